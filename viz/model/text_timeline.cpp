#include "viz/model/text_timeline.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/model/tables/bubbles.h"

namespace ranklab::viz {
namespace {

// One character, and the event that it shows.
struct TextCell {
  std::string glyph = " ";
  Rgba back = 0;  // 0: none
  Rgba front = 0;
};

class Canvas {
 public:
  Canvas(const TraceStore& store, TimeRange range, int columns, bool colour)
      : store_(store), range_(range), columns_(static_cast<size_t>(columns)), colour_(colour) {
    for (const RankTrace& trace : store.traces())
      for (const Event& event : trace.events)
        splits_ = splits_ ||
                  (event.kind == EventKind::kCompute && paint_of(event, trace.names[event.name]) == Paint::kInputGrad);
  }

  std::string row(size_t rank_index, const Row& row, const RankBubbles* bubbles) {
    std::vector<TextCell> cells(columns_);
    if (bubbles != nullptr) fill_idle(*bubbles, cells);
    fill_track(rank_index, row.tracks.front(), cells);
    return text_of(cells);
  }

  // If some backwards are split, B means an input gradient only.
  std::string_view one_letter(Paint paint) const { return splits_ && paint == Paint::kBackward ? "b" : letter(paint); }
  bool shows_letter(Paint paint) const { return by_letter_[static_cast<size_t>(paint)]; }
  bool fills() const { return fills_; }

  std::string axis() const {
    std::string marks;
    const int64_t origin = store_.range().begin_ns;
    const int64_t step = axis_step_ns(range_.length_ns(), std::max<int>(1, static_cast<int>(columns_) / 12));
    const int64_t first = (range_.begin_ns - origin + step - 1) / step * step;
    for (int64_t time = first; time + origin < range_.end_ns; time += step) {
      const size_t at = column(time + origin);
      if (at < marks.size() + (marks.empty() ? 0 : 1)) continue;
      marks.append(at - marks.size(), ' ');
      marks += "|" + tick_text(store_, time, step);
    }
    return marks;
  }

 private:
  size_t column(int64_t time) const {
    const double share = static_cast<double>(time - range_.begin_ns) / static_cast<double>(range_.length_ns());
    return static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns_) + 0.5);
  }

  void fill_idle(const RankBubbles& bubbles, std::vector<TextCell>& cells) const {
    for (const IdleInterval& idle : bubbles.idle) {
      for (size_t c = column(idle.range.begin_ns); c < std::min(columns_, column(idle.range.end_ns)); ++c)
        cells[c].glyph = letters(idle.cause);
    }
  }

  // A slice that fills whole columns is a block with its name; if slices are narrower, each column shows the dominant
  // one.
  void fill_track(size_t rank_index, const Track& track, std::vector<TextCell>& cells) {
    std::vector<std::array<int64_t, kPaints>> narrow;
    for (size_t i = track.first_ending_after(range_.begin_ns); i < track.size() && track.begin_ns[i] < range_.end_ns;
         ++i) {
      const size_t begin = column(track.begin_ns[i]), end = std::min(columns_, column(track.end_ns[i]));
      if (begin < end) {
        block(rank_index, track, i, begin, end, cells);
        continue;
      }
      if (narrow.empty()) narrow.resize(columns_);
      const size_t at = std::min(begin, columns_ - 1);
      narrow[at][static_cast<size_t>(track.paint[i])] += track.end_ns[i] - track.begin_ns[i] + 1;
    }
    for (size_t c = 0; c < narrow.size(); ++c) {
      const auto most = std::max_element(narrow[c].begin(), narrow[c].end());
      if (*most == 0 || cells[c].back != 0) continue;
      const auto paint = static_cast<Paint>(most - narrow[c].begin());
      cells[c] = {std::string(letter_of(paint)), colour(paint), text_colour(paint)};
    }
  }

  std::string_view letter_of(Paint paint) {
    by_letter_[static_cast<size_t>(paint)] = true;
    return one_letter(paint);
  }

  void block(size_t rank_index, const Track& track, size_t i, size_t begin, size_t end, std::vector<TextCell>& cells) {
    const EventRef ref = {rank_index, track.event[i]};
    const Paint paint = track.paint[i];
    std::string text = store_.text(ref);
    const std::string_view word = letters(paint);
    if (text.size() > end - begin && !word.empty())
      text = word.size() > 1 && end - begin == 1 ? letter_of(paint) : word;
    text = text.substr(0, end - begin);
    fills_ = fills_ || (!colour_ && text.size() < end - begin);
    for (size_t c = begin; c < end; ++c) {
      const size_t k = c - begin;
      cells[c] = {k < text.size() ? std::string(1, text[k]) : colour_ ? " " : "=", colour(paint), text_colour(paint)};
    }
  }

  std::string text_of(const std::vector<TextCell>& cells) const {
    std::string out;
    for (size_t i = 0; i < cells.size();) {
      const size_t first = i;
      std::string run;
      for (; i < cells.size() && cells[i].back == cells[first].back; ++i) run += cells[i].glyph;
      if (!colour_ || cells[first].back == 0) {
        out += run;
        continue;
      }
      const Rgba back = cells[first].back, front = cells[first].front;
      out += strprintf("\033[48;2;%u;%u;%um\033[38;2;%u;%u;%um", back >> 24U, back >> 16U & 255U, back >> 8U & 255U,
                       front >> 24U, front >> 16U & 255U, front >> 8U & 255U) +
             run + "\033[0m";
    }
    return out;
  }

  const TraceStore& store_;
  TimeRange range_;
  size_t columns_;
  bool colour_;
  std::array<bool, kPaints> by_letter_{};  // paints that are drawn as one letter somewhere
  bool fills_ = false;                     // some block is longer than its name
  bool splits_ = false;                    // some backwards are split into input and weight gradient
};

bool is_compute(const RankTrace& trace, const Row& row) {
  const Track& track = row.tracks.front();
  return track.size() > 0 && trace.events[track.event.front()].kind == EventKind::kCompute;
}
bool is_phase(const RankTrace& trace, const Row& row) {
  const Track& track = row.tracks.front();
  return track.size() > 0 && trace.events[track.event.front()].kind == EventKind::kPhase;
}

// The largest number of columns that gives every unit of a schedule equally many; `columns` if there are more units
// than columns.
int even_columns(const TraceStore& store, TimeRange range, int columns) {
  if (store.unit_ns() == 0 || range.length_ns() % store.unit_ns() != 0) return columns;
  const int64_t units = range.length_ns() / store.unit_ns();
  return units > 0 && units <= columns ? static_cast<int>(columns / units * units) : columns;
}

std::string legend(const TraceStore& store, TimeRange range, bool axes, const BubbleReport& report,
                   const Canvas& canvas) {
  std::array<bool, kPaints> seen{};
  for (const RankRows& rank : store.ranks()) {
    for (const Row& row : rank.rows) {
      if (!axes && row.label != "compute") continue;
      const Track& track = row.tracks.front();
      for (size_t i = track.first_ending_after(range.begin_ns); i < track.size() && track.begin_ns[i] < range.end_ns;
           ++i)
        seen[static_cast<size_t>(track.paint[i])] = true;
    }
  }
  std::string out;
  for (size_t p = 0; p < kPaints; ++p) {
    const auto paint = static_cast<Paint>(p);
    const bool by_letter = canvas.shows_letter(paint);
    if (!seen[p] || (letters(paint).empty() && !by_letter)) continue;
    out += letters(paint);
    if (by_letter && letters(paint) != canvas.one_letter(paint))
      out += (letters(paint).empty() ? "" : ", ") + std::string(canvas.one_letter(paint));
    out += " " + std::string(name(paint)) + "  ";
  }
  if (canvas.fills()) out += "= continues  ";
  for (size_t c = 0; c < kBubbleCauses; ++c) {
    const auto cause = static_cast<BubbleCause>(c);
    if (report.all.by_cause_ns[c] > 0 && cause != BubbleCause::kHost)
      out += "'" + std::string(letters(cause)) + "' " + std::string(name(cause)) + "  ";
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace

std::string text_timeline(const TraceStore& store, const TextTimelineOptions& options) {
  const TimeRange range = options.range.empty() ? store.range() : options.range;
  if (store.empty() || range.empty()) return "no events\n";
  const Window window = {range, -1};
  const BubbleReport report = find_bubbles(store, window);
  size_t label = 4;
  for (const RankRows& rank : store.ranks()) {
    for (const Row& row : rank.rows) label = std::max(label, std::max(rank.label.size(), row.label.size() + 2));
  }
  label = std::min<size_t>(label, 30);
  const int columns = even_columns(store, range, std::max(options.width - static_cast<int>(label) - 1, 10));
  Canvas canvas(store, range, columns, options.colour);
  std::string out;
  const auto line = [&](std::string name, const std::string& cells) {
    name.resize(label, ' ');
    out += name + " " + cells;
    while (!options.colour && out.back() == ' ') out.pop_back();
    out += "\n";
  };
  for (size_t r = 0; r < store.ranks().size(); ++r) {
    for (const Row& row : store.rank(r).rows) {
      if (is_phase(store.trace(r), row)) continue;
      const bool compute = is_compute(store.trace(r), row) && row.label == "compute";
      if (!compute && !options.axes) continue;
      line(compute ? store.rank(r).label : "  " + row.label, canvas.row(r, row, compute ? &report.ranks[r] : nullptr));
    }
  }
  line("time", canvas.axis());
  out += legend(store, range, options.axes, report, canvas) + "\n";
  if (!store.warning().empty()) out += store.warning() + "\n";
  return out;
}

std::string text_totals(const TraceStore& store, const Window& window) {
  const BubbleReport report = find_bubbles(store, window);
  std::string out =
      strprintf("%-24s %14s %10s %10s %10s %10s\n", "rank", "total", "busy", "bubble", "of ideal", "exposed");
  const auto line = [&](const std::string& label, const TimeSplit& time, int64_t total) {
    const auto [busy, bubble, of_ideal, exposed] = share_texts(time);
    out += strprintf("%-24s %14s %10s %10s %10s %10s\n", label.c_str(),
                     total == 0 ? "-" : format_time(store, total).c_str(), busy.c_str(), bubble.c_str(),
                     of_ideal.c_str(), exposed.c_str());
  };
  for (size_t r = 0; r < report.ranks.size(); ++r)
    line(store.rank(r).label, report.ranks[r].time, report.ranks[r].time.total_ns);
  line("mean", report.all, report.range.length_ns());
  if (const std::string_view why = why_phases_only(store); !why.empty()) out += std::string(why) + "\n";
  return out;
}

}  // namespace ranklab::viz
