// Lesson 16: one slow device among eight; the learner's search tested on worlds that are slow for known reasons.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/base/text.h"
#include "lessons/16_who_is_slow/slow_world.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

const Slowness kShown{.rank = 6, .times = 1.6};

struct Case {
  const char* name;
  Slowness slowness;
};
const std::array kCases = {Case{"rank 6 is slow", kShown}, Case{"stage 1 has more work", {.stage_1 = 1.5}},
                           Case{"rank 2 is slow, stage 1 has more work", {.rank = 2, .times = 1.4, .stage_1 = 1.5}},
                           Case{"nobody is slow", {}}, Case{"rank 0 is slow", {.rank = 0, .times = 1.4}}};

std::string percent(double share) { return strprintf("%.3g %%", 100 * share); }

double most_waits(const SlowWorld& world) {
  return std::ranges::max(world.ranks, {}, &RankTime::waits).waits / world.step_us;
}

// █ is compute, ░ is waiting.
std::string bar(const RankTime& time, double longest_us) {
  constexpr double kColumns = 40;
  const auto columns = [&](double us) { return static_cast<int>(std::lround(kColumns * us / longest_us)); };
  return repeated("█", columns(time.computes)) + repeated("░", columns(time.waits));
}

double median_of(const SlowWorld& world, int stage) {
  std::vector<double> times;
  for (const RankTime& one : world.ranks)
    if (one.stage == stage) times.push_back(one.computes);
  std::ranges::sort(times);
  return times[(times.size() - 1) / 2];
}

class WhoIsSlow final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const SlowWorld slow = slow_world(kShown), well = slow_world({});
    const RankTime& rank = slow.ranks[static_cast<size_t>(kShown.rank)];
    return {{"computes", strprintf("%.2g", rank.computes / median_of(slow, rank.stage))},
            {"waits", percent(std::round(1e3 * rank.waits / slow.step_us) * 1e-3)},
            {"others wait", percent(std::round(1e3 * most_waits(slow)) * 1e-3)},
            {"step", strprintf("%.2g", slow.step_us / well.step_us)}};
  }

  Question question() const override {
    return {.text =
                "Eight ranks meet at the end of every step. One device needs 1.6 times as long as the others. Which "
                "percentage of a step does that rank itself wait for others?",
            .unit = "%",
            .tolerance = 1};
  }

  double run(Screen& screen) const override {
    const SlowWorld world = slow_world(kShown);
    screen.heading("pp 2 x dp 4, the device of rank 6 is slow: █ computes, ░ waits");
    for (size_t rank = 0; rank < world.ranks.size(); ++rank) {
      const RankTime& time = world.ranks[rank];
      const std::string picture = bar(time, world.step_us);
      screen.line(strprintf("  rank %zu, stage %d  ", rank, time.stage) +
                  (static_cast<int>(rank) == kShown.rank ? screen.paint(Ink::kRed, picture) : picture));
    }
    screen.line();
    screen.paragraph("The visualizer of this trace: " + (world.insight.empty() ? "nothing" : world.insight));
    return 100 * world.ranks[static_cast<size_t>(kShown.rank)].waits / world.step_us;
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto usual = exercise.function<decltype(::usual_time)>("usual_time");
    const auto slow = exercise.function<decltype(::slow_rank)>("slow_rank");
    const std::array<RankTime, 5> by_hand = {{{1, 5, 0}, {0, 9, 0}, {1, 1, 0}, {1, 4, 0}, {1, 2, 0}}};
    std::vector<CheckRow> rows = {exact_row("usual of 5, 1, 4 and 2", 2, usual(by_hand, 1))};
    for (const Case& one : kCases) {
      const SlowWorld world = slow_world(one.slowness);
      for (const int stage : {0, 1})
        rows.push_back(exact_row(std::string(one.name) + ": usual in stage " + std::to_string(stage),
                                 median_of(world, stage), usual(world.ranks, stage)));
      const int found = slow(world.ranks);
      rows.push_back(exact_row(std::string(one.name) + ": slow rank", one.slowness.rank, found));
      draw(picture, one, world, found);
    }
    return rows;
  }

 private:
  static std::string words(int rank) { return rank < 0 ? "nobody" : "rank " + std::to_string(rank); }

  // Draws a line for the slowest rank of each stage, and the answers.
  static void draw(Picture& picture, const Case& one, const SlowWorld& world, int found) {
    picture.line(std::string("  ") + one.name);
    for (const int stage : {0, 1}) {
      size_t slowest = 0;
      for (size_t rank = 0; rank < world.ranks.size(); ++rank)
        if (world.ranks[rank].stage == stage &&
            (world.ranks[slowest].stage != stage || world.ranks[rank].computes > world.ranks[slowest].computes))
          slowest = rank;
      picture.line(strprintf("    stage %d, rank %zu ", stage, slowest) + bar(world.ranks[slowest], world.step_us));
    }
    picture.line("    right " + words(one.slowness.rank) + ", yours " + words(found));
  }
};

}  // namespace

LessonPtr make_who_is_slow() { return std::make_unique<WhoIsSlow>(); }

}  // namespace ranklab::lesson
