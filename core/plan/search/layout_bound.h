// What the step of a layout takes at least, from the plan of another one whose microbatches pass the same layers in the
// same way: those that differ in pipeline, schedule, or the number of replicas. Each rank computes its share of every
// microbatch, and the first and the last of them go through the stages one after another; what is waited for besides
// (messages, gradients, the optimizer) is left out. So a search need not plan what cannot be among its best.
// Torch-free. Cost: a look-up. Thread rule: one thread at a time.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "core/plan/search/layout_candidates.h"

namespace ranklab {

class LayoutBounds {
 public:
  // `pass_s`: what a microbatch takes in all stages together, where nothing is waited for but its own exchanges.
  void learn(const LayoutChoice& planned, double pass_s);
  // Whether the plan of one says something of the other.
  static bool alike(const LayoutChoice& a, const LayoutChoice& b) { return passes_of(a) == passes_of(b); }
  // Seconds; 0 where no plan says anything of it.
  double step_at_least(const TrainConfig& config, const LayoutChoice& choice) const;

 private:
  using Passes = std::tuple<int, int, int, int64_t, std::string, int>;
  static Passes passes_of(const LayoutChoice& choice);
  std::map<Passes, double> pass_s_;
};

}  // namespace ranklab
