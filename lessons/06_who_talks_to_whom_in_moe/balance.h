// A router that prefers some experts, step by step, with a bias that is updated after each step (the
// auxiliary-loss-free balancing of DeepSeek-V3, arXiv 2412.19437, section 2.1.2). Every step has new tokens. Thread
// rule: one run at a time.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lessons/rank_run.h"

namespace ranklab::lesson {

constexpr int kBalanceSteps = 100;
constexpr double kBalanceSpeed = 0.005;

using BiasRule = std::function<void(Comm&, std::span<const double>, double, std::span<double>)>;
BiasRule no_rule();
BiasRule sign_rule();  // based on the load over all ranks

struct BalanceRun {
  std::vector<std::vector<double>> load;                // [step][expert], over all ranks
  std::vector<std::vector<double>> bias;                // [step][expert], after the step, on rank 0
  bool equal_biases = true;                             // bit-identical on all ranks at every step
  double max_over_mean(int step, int steps = 1) const;  // over this many steps together, from `step` on
  int first_even_step(double limit) const;              // the first step below the limit; -1: none
};
// What one update does to the biases of experts whose copies are above, at and below the mean over all ranks: "-1 0 +1"
// in units of the speed; any other change is shown as a number. Experts 3 and 4 are at the mean over all ranks, but not
// on any single rank.
inline constexpr const char* kSigns = "-1 0 +1 0 0 0 -1 +1";
std::string one_update(const BiasRule& rule, const ExerciseLibrary& exercise);

BalanceRun balance_experts(const BiasRule& rule, const ExerciseLibrary* exercise = nullptr);

}  // namespace ranklab::lesson
