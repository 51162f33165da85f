#include "lessons/pipeline_picture.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/pipeline/schedule_trace.h"

namespace ranklab::lesson {
namespace {

Ink ink_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kF:
      return Ink::kCyan;
    case ActionKind::kW:
      return Ink::kGreen;
    default:
      return Ink::kYellow;
  }
}

// The longest label that fits, padded with blanks.
std::string block(const Schedule& schedule, const Action& action, int width, bool numbers) {
  const std::string microbatch = std::to_string(action.microbatch);
  std::string kind = letters(action.kind);
  if (schedule.part(action.stage) >= schedule.num_ranks())
    std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string with_number =
      numbers ? (action.has_forward() ? "" : kind.substr(0, 1)) + microbatch : kind + microbatch;
  for (const std::string& name : {with_number, kind, kind.substr(0, 1)}) {
    if (columns_of(name) <= width) return padded(name, width);
  }
  return "";
}

}  // namespace

void draw_pipeline(Screen& screen, const std::string& title, const TimedSchedule& run, PictureScale scale) {
  const auto column = [&](double time) { return static_cast<int>(std::lround(time * scale.columns_per_unit)); };
  const int width = column(run.timeline.end);
  screen.line("  " + padded(title, width + 6) + screen.paint(Ink::kDim, "holds"));
  for (int rank = 0; rank < run.schedule.num_ranks(); ++rank) {
    std::string text = strprintf("  rank %-2d ", rank);
    int at = 0;
    const auto idle_until = [&](int end) {
      text += screen.paint(Ink::kDim, repeated("·", end - at));
      at = end;
    };
    for (const TimedAction& one : run.timeline.ranks[static_cast<size_t>(rank)]) {
      idle_until(column(one.begin));
      const int end = column(one.end);
      text += screen.paint(ink_of(one.action.kind), block(run.schedule, one.action, end - at, scale.numbers));
      at = end;
    }
    idle_until(width);
    screen.line(text + strprintf("  %g", run.held[static_cast<size_t>(rank)]));
  }
}

void draw_lists(Screen& screen, const std::string& title, const Schedule& schedule) {
  screen.line("  " + screen.paint(Ink::kBold, title));
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    std::string text = strprintf("  rank %-2d", rank);
    for (const Action& action : schedule.ranks[static_cast<size_t>(rank)]) {
      const std::string entry = std::string(" ") + letters(action.kind) + std::to_string(action.microbatch);
      if (columns_of(text) + columns_of(entry) > screen.width() - 4) {
        text += " ...";
        break;
      }
      text += screen.paint(ink_of(action.kind), entry);
    }
    screen.line(text);
  }
}

TimedSchedule run_drawn(Screen& screen, OrderFunction* order, int ranks, int microbatches) {
  const Schedule written = written_schedule(order, ranks, microbatches);
  try {
    return timed(written);
  } catch (const Error&) {
    draw_lists(screen, strprintf("yours, p = %d, m = %d: the lists, from their beginning", ranks, microbatches),
               written);
    throw;
  }
}

void draw_beside(Picture& screen, const std::vector<OrderPair>& pairs) {
  constexpr int kLabels = 20;
  const auto longest = [](const OrderPair& pair) { return std::max(pair.yours.timeline.end, pair.right.timeline.end); };
  const OrderPair* drawn = nullptr;
  for (const OrderPair& pair : pairs) {
    if (longest(pair) > screen.width() - kLabels) continue;
    if (drawn == nullptr || (drawn->passed && !pair.passed)) drawn = &pair;
  }
  if (drawn == nullptr) return;
  const int columns = static_cast<int>((screen.width() - kLabels) / std::max(1.0, longest(*drawn)));
  const PictureScale scale{.columns_per_unit = std::clamp(columns, 1, 2), .numbers = columns <= 1};
  const auto title = [&](const char* whose, const TimedSchedule& run) {
    return strprintf("%s, %s: %g", whose, drawn->where.c_str(), run.timeline.makespan);
  };
  draw_pipeline(screen, title("yours", drawn->yours), drawn->yours, scale);
  screen.line();
  draw_pipeline(screen, title("right", drawn->right), drawn->right, scale);
  screen.record("yours", schedule_trace(drawn->yours.schedule, drawn->yours.timeline));
  screen.record("right", schedule_trace(drawn->right.schedule, drawn->right.timeline));
}

}  // namespace ranklab::lesson
