#include "cli/schedule/schedule_gantt.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "cli/schedule/plain_number.h"
#include "core/base/system.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr int kLabelColumns = 9;  // "rank 123 "
constexpr int kDrawnRanks = 16;

// The background colours of a kind of action, and of the same kind on a rank's second, fourth ... stage.
struct Paint {
  const char* even;
  const char* odd;
};
Paint paint_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kF:
      return {"30;104", "97;44"};
    case ActionKind::kB:
      return {"30;106", "30;46"};
    case ActionKind::kW:
      return {"30;102", "30;42"};
    case ActionKind::kBW:
      return {"30;103", "30;43"};
    case ActionKind::kFBW:
      return {"30;105", "97;45"};
  }
  return {"0", "0"};
}

constexpr const char* kIdlePaint = "2";

// One column of a row.
struct Cell {
  std::string glyph = "·";
  const char* paint = kIdlePaint;
};

std::string painted(const char* code, const std::string& text, const Style& style) {
  return style.on() && !text.empty() ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
}

// Neighbouring cells with the same paint share an escape code.
std::string text_of(std::span<const Cell> cells, const Style& style) {
  std::string out;
  for (size_t i = 0; i < cells.size();) {
    const size_t first = i;
    std::string run;
    for (; i < cells.size() && cells[i].paint == cells[first].paint; ++i) run += cells[i].glyph;
    out += painted(cells[first].paint, run, style);
  }
  return out;
}

class Row {
 public:
  Row(const Schedule& schedule, int rank, const GanttScale& scale, const Style& style)
      : stages_(schedule.stages_of(rank)), scale_(scale), style_(style) {}

  std::vector<Cell> cells(const std::vector<TimedAction>& actions, double end) const {
    std::vector<Cell> out(static_cast<size_t>(column(end)));
    scale_.dense ? fill_dense(actions, out) : fill_blocks(actions, out);
    return out;
  }

 private:
  int column(double time) const { return static_cast<int>(std::lround(time * scale_.columns_per_time)); }
  bool odd(int stage) const { return (std::find(stages_.begin(), stages_.end(), stage) - stages_.begin()) % 2 == 1; }
  std::string part(const char* letters, int stage, const std::string& microbatch) const {
    return (odd(stage) ? lower_case(letters) : std::string(letters)) + microbatch;
  }

  // The longest of the block's possible labels that fits.
  std::string label(const Action& a, int width) const {
    std::vector<std::string> names;
    if (a.kind == ActionKind::kFBW) {
      const std::string mine = std::to_string(a.microbatch), back = std::to_string(a.back_microbatch);
      names = {part("F", a.stage, mine) + "&" + part("BW", a.back_stage, back),
               part("F", a.stage, mine) + part("B", a.back_stage, back),
               part("F", a.stage, "") + part("B", a.back_stage, ""), "&"};
    } else {
      names = {part(letters(a.kind), a.stage, std::to_string(a.microbatch)), part(letters(a.kind), a.stage, ""),
               part(letters(a.kind), a.stage, "").substr(0, 1)};
    }
    for (const std::string& name : names)
      if (static_cast<int>(name.size()) <= width) return name;
    return "";
  }

  void fill_block(const Action& a, std::span<Cell> cells) const {
    const std::string name = label(a, static_cast<int>(cells.size()));
    const Paint paint = paint_of(a.kind);
    for (size_t i = 0; i < cells.size(); ++i) {
      cells[i].paint = odd(a.stage) ? paint.odd : paint.even;
      cells[i].glyph = i < name.size() ? name.substr(i, 1) : style_.on() ? " " : "─";
    }
  }

  void fill_blocks(const std::vector<TimedAction>& actions, std::span<Cell> cells) const {
    for (const TimedAction& timed : actions) {
      const auto begin = static_cast<size_t>(column(timed.begin)), end = static_cast<size_t>(column(timed.end));
      fill_block(timed.action, cells.subspan(begin, end - begin));
    }
  }

  // Fills each column with the action that covers most of it.
  void fill_dense(const std::vector<TimedAction>& actions, std::span<Cell> cells) const {
    size_t first = 0;
    for (size_t c = 0; c < cells.size(); ++c) {
      const double begin = static_cast<double>(c) / scale_.columns_per_time;
      const double until = static_cast<double>(c + 1) / scale_.columns_per_time;
      while (first < actions.size() && actions[first].end <= begin) ++first;
      std::array<double, 5> share = {};
      double idle = until - begin, most = 0;
      const TimedAction* shown = nullptr;
      for (size_t i = first; i < actions.size() && actions[i].begin < until; ++i) {
        const double part = std::min(until, actions[i].end) - std::max(begin, actions[i].begin);
        double& sum = share[static_cast<size_t>(actions[i].action.kind)];
        idle -= part;
        sum += part;
        if (sum <= most) continue;
        most = sum;
        shown = &actions[i];
      }
      if (shown != nullptr && idle <= most) fill_block(shown->action, cells.subspan(c, 1));
    }
  }

  std::vector<int> stages_;
  const GanttScale& scale_;
  const Style& style_;
};

// A rank's row, or "" if ranks are omitted here.
struct Line {
  std::string label;
  std::vector<Cell> cells;
};

std::vector<Line> lines_of(const Schedule& schedule, const PipelineTimeline& line, const GanttScale& scale,
                           const Style& style, bool all) {
  std::vector<Line> out;
  const int ranks = schedule.num_ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    if (!all && ranks > kDrawnRanks && rank == kDrawnRanks / 2) {
      rank = ranks - kDrawnRanks / 2;
      out.push_back({strprintf("  ... %d more ranks (--all shows them)", ranks - kDrawnRanks), {}});
    }
    out.push_back({strprintf("rank %-3d ", rank),
                   Row(schedule, rank, scale, style).cells(line.ranks[static_cast<size_t>(rank)], line.end)});
  }
  return out;
}

std::string axis(size_t first_column, size_t columns, const GanttScale& scale, const Style& style) {
  // The interval between marks is 1, 2 or 5 times a power of ten, so that marks are at least ten columns apart.
  const double least = 10 / scale.columns_per_time;
  double step = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (step * factor < least * (1 - 1e-9)) continue;
    step *= factor;
    break;
  }
  std::string marks;
  const double first = static_cast<double>(first_column) / scale.columns_per_time;
  for (auto i = static_cast<int64_t>(std::ceil(first / step - 1e-9));; ++i) {
    const double time = static_cast<double>(i) * step;
    const auto column = static_cast<size_t>(std::lround(time * scale.columns_per_time)) - first_column;
    if (column >= columns) break;
    if (marks.size() < column) marks.append(column - marks.size(), ' ');
    marks += "|" + schedule_time(time, scale.microseconds);
  }
  return style.dim("time     " + marks) + "\n";
}

}  // namespace

int gantt_width() { return std::clamp(terminal_columns(80), 40, 1000); }

GanttScale gantt_scale(const PipelineTimeline& line, double end, int width, int panels) {
  double shortest = end;
  for (const auto& rank : line.ranks) {
    for (const TimedAction& timed : rank) {
      if (timed.end > timed.begin) shortest = std::min(shortest, timed.end - timed.begin);
    }
  }
  const int columns = width - kLabelColumns;
  const double per_shortest = columns * shortest / end + 1e-9;
  if (per_shortest >= 1) return {std::floor(per_shortest) / shortest, false};
  if (per_shortest * panels >= 1) return {1 / shortest, false};
  return {columns / end, true};
}

std::string gantt(const Schedule& schedule, const PipelineTimeline& line, const GanttScale& scale, const Style& style,
                  const GanttView& view) {
  const std::vector<Line> lines = lines_of(schedule, line, scale, style, view.all);
  const auto width = static_cast<size_t>(view.width - kLabelColumns);
  const auto columns = static_cast<size_t>(std::lround(view.end * scale.columns_per_time));
  std::string out;
  for (size_t first = 0; first < columns; first += width) {
    const size_t last = std::min(columns, first + width);
    if (first > 0) out += "\n";
    for (const Line& one : lines) {
      const size_t size = one.cells.size();
      const std::span<const Cell> cells(one.cells);
      const auto shown = cells.subspan(std::min(first, size), std::min(last, size) - std::min(first, size));
      out += (one.cells.empty() ? style.dim(one.label) : one.label) + text_of(shown, style) + "\n";
    }
    if (view.axis) out += axis(first, last - first, scale, style);
  }
  return out;
}

std::string gantt_legend(std::span<const Schedule* const> schedules, const GanttScale& scale, const Style& style) {
  std::array<bool, 5> there = {};
  bool several = false;
  for (const Schedule* schedule : schedules) {
    several = several || schedule->num_stages() > schedule->num_ranks();
    for (const auto& actions : schedule->ranks)
      for (const Action& a : actions) there[static_cast<size_t>(a.kind)] = true;
  }
  const std::array<std::pair<ActionKind, const char*>, 5> words = {
      {{ActionKind::kF, "forward"},
       {ActionKind::kB, "input gradient"},
       {ActionKind::kW, "weight gradient"},
       {ActionKind::kBW, "both gradients"},
       {ActionKind::kFBW, "forward and backward at once"}}};
  std::string out;
  for (const auto& [kind, word] : words) {
    if (!there[static_cast<size_t>(kind)]) continue;
    const std::string letter = scale.dense ? std::string(letters(kind)).substr(kind == ActionKind::kFBW ? 1 : 0, 1)
                                           : std::string(letters(kind));
    out += painted(paint_of(kind).even, letter, style) + " " + word + "   ";
  }
  out += style.dim("·") + " idle";
  if (several) out += "\nlower case: on the second, fourth ... stage of a rank";
  if (scale.dense)
    out += "\na column is " + schedule_time(1 / scale.columns_per_time, scale.microseconds, 3) +
           (scale.microseconds ? "" : " of time") + " and shows what fills most of it";
  return out + "\n";
}

}  // namespace ranklab
