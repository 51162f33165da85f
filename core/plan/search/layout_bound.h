// A lower bound on the step time of a layout, derived from the plan of another layout whose microbatches pass the same
// layers in the same way; such layouts differ only in pipeline, schedule, or the number of replicas. Each rank computes
// its share of every microbatch, and the first and the last microbatch pass the stages one after another; all other
// waiting (for messages, gradients, the optimizer) is left out. With this bound a search need not plan layouts that
// cannot be among its best. Torch-free. Cost: a look-up. Thread rule: one thread at a time.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "core/plan/search/layout_candidates.h"

namespace ranklab {

class LayoutBounds {
 public:
  // `pass_s`: the time of a microbatch in all stages together, in which nothing is waited for except its own exchanges.
  void learn(const LayoutChoice& planned, double pass_s);
  // Whether the plan of one layout gives a bound for the other.
  static bool alike(const LayoutChoice& a, const LayoutChoice& b) { return passes_of(a) == passes_of(b); }
  // In seconds; 0 if no plan gives a bound.
  double step_at_least(const TrainConfig& config, const LayoutChoice& choice) const;

 private:
  using Passes = std::tuple<int, int, int, int64_t, std::string, int>;
  static Passes passes_of(const LayoutChoice& choice);
  std::map<Passes, double> pass_s_;
};

}  // namespace ranklab
