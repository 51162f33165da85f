// Lesson 15: everybody waits, and one rank never came; the learner's search tested on worlds that were stopped on
// purpose.
#include <algorithm>
#include <array>
#include <memory>

#include "core/base/text.h"
#include "lessons/15_who_is_missing/stuck_world.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr int kCulprit = 3, kCall = 1;

struct Case {
  int culprit, call;
};
constexpr std::array kCases = {Case{kCulprit, kCall}, Case{6, 2}, Case{0, 7}, Case{5, 0}, Case{1, 0}};

int count_waiting(const StuckWorld& world) {
  return static_cast<int>(std::ranges::count_if(world.waits_in, [](int group) { return group >= 0; }));
}
int count_direct(const StuckWorld& world) {
  int count = 0;
  for (int rank = 0; rank < 8; ++rank) count += world.waits_for(rank) == world.culprit;
  return count;
}
int longest(const StuckWorld& world) {
  int most = 0;
  for (int rank = 0; rank < 8; ++rank) most = std::max(most, world.hops_to_culprit(rank));
  return most;
}

std::string chain(const StuckWorld& world, int rank) {
  std::string text = std::to_string(rank);
  for (int hops = 0; world.waits_for(rank) >= 0 && hops < 8; ++hops) {
    rank = world.waits_for(rank);
    text += " -> " + std::to_string(rank);
  }
  return text;
}

std::string longest_chain(const StuckWorld& world) {
  std::string longest;
  for (int rank = 0; rank < 8; ++rank)
    if (std::string one = chain(world, rank); one.size() > longest.size()) longest = std::move(one);
  return longest;
}

class WhoIsMissing final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const StuckWorld world = stuck_world(kCulprit, kCall);
    const int waiting = count_waiting(world), direct = count_direct(world);
    return {{"ranks that wait", std::to_string(waiting)},
            {"directly", std::to_string(direct)},
            {"for a rank that waits", std::to_string(waiting - direct)},
            {"longest chain", std::to_string(longest(world))}};
  }

  Question question() const override {
    return {.text =
                "Eight ranks, tp 2 x dp 2 x pp 2. Rank 3 leaves out one all-reduce over tp, with one peer. How many of "
                "the eight ranks wait in the end?",
            .unit = "ranks",
            .tolerance = 0.1};
  }

  double run(Screen& screen) const override {
    const StuckWorld world = stuck_world(kCulprit, kCall);
    screen.heading("Rank 3 leaves before its second call over tp: where everybody ends");
    std::vector<Cells> rows = {{"rank", "waits in", "its call there", "who waits for whom"}};
    for (int rank = 0; rank < 8; ++rank) {
      const int group = world.waits_in[static_cast<size_t>(rank)];
      const bool waits = group >= 0;
      rows.push_back({std::to_string(rank),
                      waits ? world.names[static_cast<size_t>(group)] : screen.paint(Ink::kRed, "nothing"),
                      waits ? std::to_string(world.made[static_cast<size_t>(rank)][static_cast<size_t>(group)]) : "",
                      chain(world, rank)});
    }
    screen.table(rows);
    screen.line();
    screen.paragraph("What real ranks report when they do the same: " + reported(kCulprit, kCall));
    return count_waiting(world);
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto come = exercise.function<decltype(::has_come)>("has_come");
    const auto missing = exercise.function<decltype(::missing_rank)>("missing_rank");
    std::vector<CheckRow> rows;
    for (const Case& one : kCases) {
      const StuckWorld world = stuck_world(one.culprit, one.call);
      const std::vector<StuckRank> ranks = world.ranks();
      const std::vector<GroupOfRanks> groups = world.groups();
      const std::string name = strprintf("rank %d left before call %d", one.culprit, one.call + 1);
      int wrong = 0;
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        for (size_t group = 0; group < groups.size(); ++group)
          for (int call = 1; call <= 4; ++call)
            wrong += come(ranks[rank], static_cast<int>(group), call) != (world.made[rank][group] >= call);
      rows.push_back(exact_row(name + ": calls misread", 0, wrong));
      const int found = missing(ranks, groups);
      rows.push_back(exact_row(name + ": missing", one.culprit, found));
      picture.line("  " + name);
      picture.line(strprintf("    right  rank %d: ", one.culprit) + longest_chain(world) + ", which waits for nobody");
      const bool real = found >= 0 && found < 8;
      picture.line(strprintf("    yours  rank %d: ", found) + (!real ? "there is no such rank"
                                                               : world.waits_in[static_cast<size_t>(found)] < 0
                                                                   ? "it waits for nobody"
                                                                   : "it waits itself, " + chain(world, found)));
    }
    return rows;
  }
};

}  // namespace

LessonPtr make_who_is_missing() { return std::make_unique<WhoIsMissing>(); }

}  // namespace ranklab::lesson
