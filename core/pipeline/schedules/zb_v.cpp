// ZB-V (Qi et al., arXiv 2401.10241, section 6): two stages per rank, down and back up, so that rank 0 starts the
// backward of the microbatch that it forwarded last, and every rank holds the same p activations. There is no bubble
// with F = B = W, c = 0 and at least 2p-1 microbatches; with p of them the bubble is (p-1)/2 of an F. With other costs
// a W runs where a rank would be idle. After the last F it runs only if the rank would be idle for most of a W, because
// a B that is late there makes every later B late, and a difference of a percent in F or B decides which gaps are long
// enough for a W. Ranks may then wait a little less than the slowest rank does, which is how the authors' own search
// bounds it.
#include <algorithm>

#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/placement.h"
#include "core/pipeline/schedules/weight_placement.h"

namespace ranklab {
namespace {

// F and B of one rank. With few microbatches this is the order for 2p-1 microbatches, without those that do not exist.
class Order {
 public:
  Order(int rank, const ScheduleRequest& request)
      : stage_{rank, 2 * request.num_ranks - 1 - rank}, microbatches_(request.num_microbatches) {
    const int p = request.num_ranks, m = std::max(microbatches_, 2 * p - 1);
    for (int i = 0; i < 2 * (p - rank) - 1; ++i) f(0);
    for (int i = 0; i < rank; ++i) f(1), f(0);
    for (int i = 0; i < p - rank; ++i) f(1), b(1);
    while (forwards_[1] < m) {
      if (forwards_[0] < m) f(0);
      b(0);
      f(1);
      b(1);
    }
    while (backwards_[0] < m) {
      b(0);
      if (backwards_[1] < m) b(1);
    }
  }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  void f(int chunk) {
    if (forwards_[chunk] < microbatches_) actions_.push_back(forward(stage_[chunk], forwards_[chunk]));
    ++forwards_[chunk];
  }
  void b(int chunk) {
    if (backwards_[chunk] < microbatches_) actions_.push_back(input_grad(stage_[chunk], backwards_[chunk]));
    ++backwards_[chunk];
  }
  int stage_[2];
  int microbatches_;
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
  std::vector<Action> actions_;
};

}  // namespace

Schedule make_zb_v(const ScheduleRequest& request, const ScheduleCosts& costs) {
  PlacedWeights best;
  const auto place = [&](const WeightPlacement& rules) {
    Schedule order = v_shaped("zb-v", request);
    for (int rank = 0; rank < request.num_ranks; ++rank)
      order.ranks[static_cast<size_t>(rank)] = Order(rank, request).take();
    PlacedWeights placed = place_weight_grads(std::move(order), costs, rules);
    if (best.schedule.ranks.empty() || placed.makespan < best.makespan) best = std::move(placed);
  };
  const auto limit = static_cast<double>(request.num_ranks);
  constexpr double kPatience[][2] = {{0, 0.8}, {0, 0.4}, {0, 0}, {0.5, 0.5}, {1, 1}};  // before and after the last F
  for (const auto& [before, after] : kPatience)
    place({.memory_limit = limit, .patience = before, .patience_at_end = after});
  const double idle = best.makespan - request.num_microbatches * (costs.f + costs.b + costs.w);
  if (idle <= 0) return std::move(best.schedule);
  for (const double part : {0.99, 0.98, 0.97, 0.96, 0.94, 0.92, 0.9, 0.88})
    place({.memory_limit = limit, .idle_allowed = part * idle});
  return std::move(best.schedule);
}

}  // namespace ranklab
