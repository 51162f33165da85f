// Lesson 5: interleaved 1F1B and deferred weight gradients drawn and timed; the learner's order compared with ZB-H1's
// time and 1F1B's memory.
#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "core/pipeline/schedules.h"
#include "lessons/05_can_the_bubble_shrink/exercise.h"
#include "lessons/exercise_library.h"
#include "lessons/pipeline_picture.h"
#include "lessons/written_order.h"

namespace ranklab::lesson {
namespace {

constexpr int kRanks = 8;
constexpr std::array kMicrobatches = {8, 16, 32};
constexpr std::array<std::array<int, 2>, 5> kCases = {{{8, 8}, {8, 32}, {4, 9}, {8, 3}, {1, 4}}};  // p, m
constexpr int kBothWays = 16;  // microbatches; DualPipe needs two per rank
constexpr PictureScale kPicture = {.columns_per_unit = 2};

// 1F1B with the weight gradient directly after the input gradient.
TimedSchedule split_in_place(int ranks, int microbatches) {
  Schedule schedule = make_schedule("1f1b", {ranks, microbatches, 1}, kUnitCosts);
  for (std::vector<Action>& actions : schedule.ranks) {
    std::vector<Action> split;
    for (const Action& a : actions) {
      if (a.kind != ActionKind::kBW) {
        split.push_back(a);
        continue;
      }
      split.push_back(input_grad(a.stage, a.microbatch));
      split.push_back(weight_grad(a.stage, a.microbatch));
    }
    actions = split;
  }
  return timed(std::move(schedule));
}

struct Variant {
  const char* title;
  TimedSchedule (*run)(int ranks, int microbatches);
};
constexpr std::array<Variant, 5> kVariants = {{
    {"1F1B", [](int p, int m) { return timed("1f1b", p, m); }},
    {"interleaved, v = 2", [](int p, int m) { return timed("interleaved-1f1b", p, m, 2); }},
    {"interleaved, v = 4", [](int p, int m) { return timed("interleaved-1f1b", p, m, 4); }},
    {"1F1B, B and W apart", split_in_place},
    {"ZB-H1", [](int p, int m) { return timed("zb-h1", p, m); }},
}};

// Times are in units of one of 8 stages, so a rank with two stages does twice the work.
struct BothWays {
  const char* title;
  const char* name;
  int ranks;
  int stages() const { return name == std::string_view("dualpipe") ? 2 : kRanks / ranks; }
  TimedSchedule run() const { return timed(name, ranks, kBothWays); }
  double unit() const { return static_cast<double>(kRanks) / ranks; }
  std::string bubble() const {
    const PipelineTimeline line = run().timeline;
    return strprintf("%g", unit() * (line.makespan - line.ideal));
  }
  std::string held() const { return strprintf("%g", unit() * run().most_held()); }
};
constexpr std::array<BothWays, 4> kBothWaysRows = {{{"1F1B", "1f1b", kRanks},
                                                    {"ZB-H1", "zb-h1", kRanks},
                                                    {"DualPipe", "dualpipe", kRanks},
                                                    {"DualPipeV", "dualpipe-v", kRanks / 2}}};

void draw(Screen& screen) {
  constexpr int kDrawnRanks = 4, kDrawnMicrobatches = 8;
  screen.heading("4 ranks, 8 microbatches: when each rank does what");
  screen.paragraph(
      "F forward, B gradient of the input, W gradient of the weights, BW both, · idle; lower case on a rank's second "
      "stage. On the right: what the rank holds at most.");
  for (const int shown : {0, 1, 4}) {
    const Variant& variant = kVariants[static_cast<size_t>(shown)];
    const TimedSchedule run = variant.run(kDrawnRanks, kDrawnMicrobatches);
    screen.line();
    draw_pipeline(screen, strprintf("%s: %g", variant.title, run.timeline.makespan), run, kPicture);
  }
}

void compare(Screen& screen) {
  screen.heading("8 ranks, m microbatches: time, bubble, and what a rank holds at most");
  std::vector<Cells> rows = {{"", "m = 8", "m = 16", "m = 32", "holds"}};
  for (const Variant& variant : kVariants) {
    rows.push_back({variant.title});
    double held = 0;
    for (const int m : kMicrobatches) {
      const TimedSchedule run = variant.run(kRanks, m);
      rows.back().push_back(strprintf("%g  ", run.timeline.makespan) +
                            padded_left(percent(run.timeline.bubble_of_total()), 7));
      held = run.most_held();
    }
    rows.back().push_back(strprintf("%g", held));
  }
  screen.table(rows);
}

void compare_both_ways(Screen& screen) {
  screen.heading("8 stages, 16 microbatches: from both ends");
  std::vector<Cells> rows = {{"", "ranks", "stages on a rank", "bubble", "holds at most"}};
  for (const BothWays& row : kBothWaysRows)
    rows.push_back({row.title, std::to_string(row.ranks), std::to_string(row.stages()), row.bubble(), row.held()});
  screen.table(rows);
}

class CanTheBubbleShrink final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    std::vector<Figure> figures;
    for (const Variant& variant : kVariants) {
      double held = 0;
      for (const int m : kMicrobatches) {
        const TimedSchedule run = variant.run(kRanks, m);
        figures.push_back({strprintf("%s, bubble", variant.title), percent(run.timeline.bubble_of_total())});
        if (variant.title == std::string_view("ZB-H1"))
          figures.push_back({"ZB-H1, time", strprintf("%g", run.timeline.makespan)});
        held = run.most_held();
      }
      figures.push_back({strprintf("%s, holds", variant.title), strprintf("%g", held)});
    }
    for (const BothWays& row : kBothWaysRows) {
      figures.push_back({strprintf("%s, bubble", row.title), row.bubble()});
      figures.push_back({strprintf("%s, holds", row.title), row.held()});
      if (row.stages() == 2) figures.push_back({strprintf("%s, stages", row.title), std::to_string(row.stages())});
    }
    return figures;
  }

  Question question() const override {
    return {
        .text =
            "8 ranks, 8 microbatches; F, B and W take 1 each. A rank works for 24, and 1F1B takes 45. How long does "
            "it take with the weight gradients moved, if no rank may hold more activations than 1F1B's first?",
        .unit = "units"};
  }

  double run(Screen& screen) const override {
    draw(screen);
    compare(screen);
    compare_both_ways(screen);
    return timed("zb-h1", kRanks, kRanks).timeline.makespan;
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    auto* const order = exercise.function<decltype(write_order)>("write_order");
    std::vector<CheckRow> rows;
    std::vector<OrderPair> pairs;
    for (const auto& [p, m] : kCases) {
      const TimedSchedule want = timed("zb-h1", p, m), got = run_drawn(picture, order, p, m);
      const double time = want.timeline.makespan;
      const std::string where = strprintf("p = %d, m = %d", p, m), title = where + ": ";
      rows.push_back({title + "time", strprintf("%g", time), strprintf("%g", got.timeline.makespan), "at most",
                      got.timeline.makespan <= time});
      rows.push_back(
          {title + "held", std::to_string(p), strprintf("%g", got.most_held()), "at most", got.most_held() <= p});
      pairs.push_back({where, got, want, std::all_of(rows.end() - 2, rows.end(), [](auto& r) { return r.passed; })});
    }
    draw_beside(picture, pairs);
    return rows;
  }
};

}  // namespace

LessonPtr make_can_the_bubble_shrink() { return std::make_unique<CanTheBubbleShrink>(); }

}  // namespace ranklab::lesson
