#include "core/plan/search/layout_bound.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ranklab {
namespace {

// A bound leaves out messages, the optimizer and the head, and passes differ by the copies of gradients that a schedule
// distributes over them. With few microbatches, a stage that has one layer less than the others waits less than the
// formula says.
constexpr double kEqual = 0.97, kEqualUneven = 0.9;

// The part that remains of the (pp - 1) / vpp passes during which a rank of 1F1B waits at the start and the end. ZB-H1
// fills them with weight gradients, which are hardly more than half of a backward. For other schedules the bound is
// only that each rank computes its share, and their plans give no bounds for other layouts, since their ranks may hold
// stages twice.
struct Waiting {
  std::string_view schedule;
  double share;
};
constexpr std::array kWaiting = {Waiting{"1f1b", 1}, Waiting{"interleaved-1f1b", 1}, Waiting{"gpipe", 1},
                                 Waiting{"looped-bfs", 1}, Waiting{"zb-h1", 0.25}};

const Waiting* waiting_of(const LayoutChoice& l) {
  const auto* const row = std::ranges::find(kWaiting, std::string_view(l.schedule), &Waiting::schedule);
  return row == kWaiting.end() ? nullptr : row;
}

double waiting_passes(const LayoutChoice& l) {
  const Waiting* row = waiting_of(l);
  return row == nullptr ? 0 : row->share * (l.pp - 1) / l.virtual_stages;
}

}  // namespace

// From ZeRO stage 2 on, gradients are reduced with every microbatch, and with stage 3 weights are gathered with it.
LayoutBounds::Passes LayoutBounds::passes_of(const LayoutChoice& l) {
  return {l.tp, l.cp, l.ep, l.micro_batch, l.recompute, std::max(l.zero_stage, 1)};
}

void LayoutBounds::learn(const LayoutChoice& planned, double pass_s) {
  if (pass_s <= 0 || waiting_of(planned) == nullptr) return;
  double& least = pass_s_.try_emplace(passes_of(planned), pass_s).first->second;
  least = std::min(least, pass_s);
}

double LayoutBounds::step_at_least(const TrainConfig& c, const LayoutChoice& l) const {
  const auto known = pass_s_.find(passes_of(l));
  // With another order of the axes, the exchanges of a pass may cross nodes in one layout and not in the other.
  if (known == pass_s_.end() || !c.parallel.order.ends_with("dp-pp")) return 0;
  const double replicas = static_cast<double>(c.parallel.world) / l.tp / l.pp / l.cp;
  const double microbatches = static_cast<double>(c.global_batch_size) / replicas / static_cast<double>(l.micro_batch);
  const bool even = c.model.num_layers % (int64_t{l.pp} * l.virtual_stages) == 0;
  return (even ? kEqual : kEqualUneven) * known->second / l.pp * (microbatches + waiting_passes(l));
}

}  // namespace ranklab
