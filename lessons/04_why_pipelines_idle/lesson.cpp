// Lesson 4: GPipe and 1F1B drawn and timed; the learner's order compared with 1F1B's time and memory.
#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "lessons/04_why_pipelines_idle/exercise.h"
#include "lessons/exercise_library.h"
#include "lessons/pipeline_picture.h"
#include "lessons/written_order.h"

namespace ranklab::lesson {
namespace {

constexpr int kRanks = 8;
constexpr std::array kMicrobatches = {8, 16, 32};
// Pairs of p and m, including fewer microbatches than ranks, and a single rank.
constexpr std::array<std::array<int, 2>, 5> kCases = {{{8, 8}, {8, 32}, {5, 7}, {8, 3}, {1, 4}}};

double idle_of_a_rank(const TimedSchedule& run) { return run.timeline.makespan - run.timeline.ideal; }

double waited(const TimedSchedule& run, int rank, IdleCause cause) {
  double sum = 0;
  for (const Idle& idle : run.timeline.idle[static_cast<size_t>(rank)]) {
    if (idle.cause == cause) sum += idle.end - idle.begin;
  }
  return sum;
}

void show_causes(Screen& screen, const TimedSchedule& gpipe, const TimedSchedule& one) {
  screen.heading("Where the idle time lies");
  std::vector<Cells> rows = {{"", "before the first forward", "in between", "after the last backward"}};
  for (const TimedSchedule* run : {&gpipe, &one}) {
    for (const int rank : {0, 3, kRanks - 1}) {
      rows.push_back({strprintf("%s, rank %d", run == &gpipe ? "GPipe" : "1F1B", rank),
                      strprintf("%g", waited(*run, rank, IdleCause::kWarmUp)),
                      strprintf("%g", waited(*run, rank, IdleCause::kDependency)),
                      strprintf("%g", waited(*run, rank, IdleCause::kDrain))});
    }
  }
  screen.table(rows);
}

class WhyPipelinesIdle final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    std::vector<Figure> figures;
    for (const int m : kMicrobatches) {
      const TimedSchedule gpipe = timed("gpipe", kRanks, m), one = timed("1f1b", kRanks, m);
      for (const TimedSchedule* run : {&gpipe, &one}) {
        figures.push_back({"time", strprintf("%g", run->timeline.makespan)});
        figures.push_back({"bubble of total", percent(run->timeline.bubble_of_total())});
        figures.push_back({"bubble of the work", percent(run->timeline.bubble_of_ideal())});
        figures.push_back({"idle time of a rank", strprintf("%g", idle_of_a_rank(*run))});
      }
      figures.push_back({"GPipe holds", strprintf("%g", gpipe.most_held())});
      figures.push_back({"1F1B holds", one.held_text()});
    }
    return figures;
  }

  Question question() const override {
    return {.text =
                "A pipeline of 8 ranks and 8 microbatches runs 1F1B; a backward takes twice as long as a forward. What "
                "part of the time does a rank stand idle, in percent?",
            .unit = "%",
            .tolerance = 1};
  }

  double run(Screen& screen) const override {
    const TimedSchedule gpipe = timed("gpipe", kRanks, kRanks), one = timed("1f1b", kRanks, kRanks);
    screen.heading("8 ranks, 8 microbatches: when each rank does what");
    screen.paragraph(
        "0 the forward of microbatch 0, B0 its backward, · idle. On the right: what the rank holds at most.");
    screen.line();
    draw_pipeline(screen, "GPipe", gpipe, {.numbers = true});
    screen.line();
    draw_pipeline(screen, "1F1B", one, {.numbers = true});
    show_causes(screen, gpipe, one);
    screen.heading("More microbatches");
    std::vector<Cells> rows = {{"microbatches", "schedule", "time", "of total", "of the work", "holds, rank by rank"}};
    for (const int m : kMicrobatches) {
      for (const char* name : {"gpipe", "1f1b"}) {
        const TimedSchedule run = timed(name, kRanks, m);
        rows.push_back({std::to_string(m), name, strprintf("%g", run.timeline.makespan),
                        percent(run.timeline.bubble_of_total()), percent(run.timeline.bubble_of_ideal()),
                        run.held_text()});
      }
    }
    screen.table(rows);
    return 100 * one.timeline.bubble_of_total();
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    auto* const order = exercise.function<decltype(write_order)>("write_order");
    std::vector<CheckRow> rows;
    std::vector<OrderPair> pairs;
    for (const auto& [p, m] : kCases) {
      const TimedSchedule want = timed("1f1b", p, m), got = run_drawn(picture, order, p, m);
      const std::string where = strprintf("p = %d, m = %d", p, m), title = where + ": ";
      rows.push_back({title + "time", strprintf("%g", want.timeline.makespan), strprintf("%g", got.timeline.makespan),
                      "exact", got.timeline.makespan == want.timeline.makespan});
      rows.push_back({title + "held", want.held_text(), got.held_text(), "exact", got.held == want.held});
      pairs.push_back({where, got, want, std::all_of(rows.end() - 2, rows.end(), [](auto& r) { return r.passed; })});
    }
    draw_beside(picture, pairs);
    return rows;
  }
};

}  // namespace

LessonPtr make_why_pipelines_idle() { return std::make_unique<WhyPipelinesIdle>(); }

}  // namespace ranklab::lesson
