// Lesson 17: when copies of weights stop being equal, and when the loss shows it; the learner's comparison tested on
// runs with historical bugs.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

#include "core/base/text.h"
#include "lessons/17_which_copies_drift/drifting_run.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr int kSteps = 200;
constexpr double kSeen = 0.001;
constexpr const char* kShown = "norm-unreduced";

struct Case {
  const char* bug;
  int drifts;  // the first step with drift
};
constexpr std::array kCases = {Case{"", -1}, Case{kShown, 1}, Case{"last-stage-unsynced", 1},
                               Case{"last-microbatch-local", 1}};

struct TwoRuns {
  DriftingRun right, wrong;
  double apart(size_t step) const { return std::abs(wrong.losses[step] - right.losses[step]); }
};

const TwoRuns& shown() {
  const auto run = [](const char* bug) { return drifting_run(bug, {.world = 2, .tp = 2}, kSteps); };
  static const TwoRuns kRuns{run(""), run(kShown)};
  return kRuns;
}

int first_apart(const TwoRuns& runs) {
  for (size_t step = 0; step < runs.wrong.losses.size(); ++step)
    if (runs.apart(step) >= kSeen) return static_cast<int>(step);
  return -1;
}
double largest_difference(const TwoRuns& runs) {
  double most = 0;
  for (size_t step = 0; step < runs.wrong.losses.size(); ++step) most = std::max(most, runs.apart(step));
  return most;
}
// The first step at whose begin the norms of two tp ranks have different hashes.
int first_other_hash(const DriftingRun& run) {
  for (size_t step = 0; step < run.steps.size(); ++step)
    if (run.steps[step][0].whole != run.steps[step][1].whole) return static_cast<int>(step);
  return -1;
}

std::string words(int step) { return step < 0 ? "never" : "step " + std::to_string(step); }

// A letter for each rank; ranks with the same hash get the same letter.
std::string letters(const std::vector<RankHashes>& ranks, bool split) {
  std::map<unsigned long long, char> known;
  std::string text;
  for (const RankHashes& rank : ranks) {
    const unsigned long long hash = split ? rank.split : rank.whole;
    text += known.try_emplace(hash, static_cast<char>('a' + known.size())).first->second;
  }
  return text;
}

class WhichCopiesDrift final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const TwoRuns& runs = shown();
    return {{"hashes differ from step", std::to_string(first_other_hash(runs.wrong))},
            {"losses differ from step", std::to_string(first_apart(runs))},
            {"most apart", strprintf("%.3f", largest_difference(runs))}};
  }

  Question question() const override {
    return {.text =
                "Two tp ranks do not add up their gradients of the norms. Their weights are equal in step 0. At the "
                "beginning of which step do the hashes of their norms differ for the first time?",
            .unit = "",
            .tolerance = 0.1};
  }

  double run(Screen& screen) const override {
    const TwoRuns& runs = shown();
    screen.heading("200 steps on 2 tp ranks, with and without the sum of the norms' gradients");
    std::vector<Cells> rows = {{"step", "loss", "loss with the bug", "apart", "norms' hashes"}};
    for (const size_t step : {0, 1, 2, 10, 50, 100, 150, 199})
      rows.push_back({std::to_string(step), strprintf("%.4f", runs.right.losses[step]),
                      strprintf("%.4f", runs.wrong.losses[step]), strprintf("%.4f", runs.apart(step)),
                      letters(runs.wrong.steps[step], false)});
    screen.table(rows);
    screen.line();
    screen.paragraph("Hashes as letters: " + screen.paint(Ink::kYellow, "aa") + " is the same on both ranks, " +
                     screen.paint(Ink::kYellow, "ab") + " is not.");
    return first_other_hash(runs.wrong);
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    constexpr int kChecked = 3;
    const auto equal = exercise.function<decltype(::must_equal)>("must_equal");
    const auto drift = exercise.function<decltype(::first_drift)>("first_drift");
    std::vector<CheckRow> rows;
    picture.line("  A letter for each rank's hash of what tp has whole, then of what it splits");
    for (const Case& one : kCases) {
      const DriftingRun run = drifting_run(one.bug, {.world = 8, .tp = 2, .pp = 2}, kChecked);
      const std::string name = *one.bug == '\0' ? "no bug" : one.bug;
      if (*one.bug == '\0')
        rows.push_back(exact_row("pairs of ranks judged wrong", 0, wrong_pairs(run.steps[0], equal)));
      std::vector<StepHashes> steps(run.steps.begin(), run.steps.end());
      const int found = drift(steps);
      rows.push_back({name + ": first drift", words(one.drifts), words(found), "exact", found == one.drifts});
      std::string line = "    ";
      for (const auto& step : run.steps) line += letters(step, false) + " " + letters(step, true) + "   ";
      picture.line("  " + name);
      picture.line(line);
      picture.line("    right " + words(one.drifts) + ", yours " + words(found));
    }
    rows.push_back(one_rank_row("what tp splits of one rank, step 1", drift, 1, &RankHashes::split));
    rows.push_back(one_rank_row("norms of one rank, step 0", drift, 0, &RankHashes::whole));
    return rows;
  }

 private:
  // A correct run, except that one rank's hash differs from a step on.
  static CheckRow one_rank_row(const char* name, decltype(::first_drift)* drift, size_t step,
                               unsigned long long RankHashes::*hash) {
    std::vector<RankHashes> ranks;
    for (int rank = 0; rank < 8; ++rank) ranks.push_back({rank % 2, rank / 2 % 2, rank / 4, 11, 21ULL + rank % 2});
    std::vector<std::vector<RankHashes>> run(3, ranks);
    for (size_t later = step; later < run.size(); ++later) run[later][5].*hash += 1000;
    const std::vector<StepHashes> steps(run.begin(), run.end());
    return exact_row(name, static_cast<double>(step), drift(steps));
  }

  static int wrong_pairs(const std::vector<RankHashes>& ranks, decltype(::must_equal)* equal) {
    int wrong = 0;
    for (const RankHashes& a : ranks)
      for (const RankHashes& b : ranks)
        for (const bool split : {false, true}) {
          const bool right = a.pp == b.pp && (!split || a.tp == b.tp);
          wrong += equal(a, b, split) != right;
        }
    return wrong;
  }
};

}  // namespace

LessonPtr make_which_copies_drift() { return std::make_unique<WhichCopiesDrift>(); }

}  // namespace ranklab::lesson
