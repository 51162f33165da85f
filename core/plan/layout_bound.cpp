#include "core/plan/layout_bound.h"

#include <algorithm>

namespace ranklab {
namespace {

// Stages differ by a layer, and passes by the copies of gradients that a schedule spreads over them.
constexpr double kEqual = 0.97;

// The passes of a microbatch for which a rank waits in the beginning and in the end, in those of a stage. ZB-H1 fills
// them with weight gradients, which are hardly more than half of a backward.
double waiting_passes(const LayoutChoice& l) {
  const double stages = static_cast<double>(l.pp - 1) / l.virtual_stages;
  return l.schedule == "zb-h1" ? stages / 4 : stages;
}

}  // namespace

// From ZeRO stage 2 on gradients leave with every microbatch, and with 3 weights come with it.
LayoutBounds::Passes LayoutBounds::passes_of(const LayoutChoice& l) {
  return {l.tp, l.cp, l.ep, l.micro_batch, l.recompute, std::max(l.zero_stage, 1)};
}

void LayoutBounds::learn(const LayoutChoice& planned, double pass_s) {
  double& least = pass_s_.try_emplace(passes_of(planned), pass_s).first->second;
  least = std::min(least, pass_s);
}

double LayoutBounds::step_at_least(const TrainConfig& c, const LayoutChoice& l) const {
  const auto known = pass_s_.find(passes_of(l));
  if (known == pass_s_.end()) return 0;
  const double replicas = static_cast<double>(c.parallel.world) / l.tp / l.pp / l.cp;
  const double microbatches = static_cast<double>(c.global_batch_size) / replicas / static_cast<double>(l.micro_batch);
  return kEqual * known->second / l.pp * (microbatches + waiting_passes(l));
}

}  // namespace ranklab
