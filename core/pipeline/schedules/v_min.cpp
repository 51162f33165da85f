// V-Min (Qi et al., arXiv 2405.15362): at most (p+4)/3 activations on every rank, a third of 1F1B's peak, and with F =
// B = W at most two thirds of 1F1B's bubble. Unequal costs make it slower, because its order has no slack.
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/v_block.h"

namespace ranklab {

Schedule make_v_min(const ScheduleRequest& request, const ScheduleCosts& costs) {
  const VBlock block = {.forward_down = 1, .forward_up = 1, .backward_down = 1, .backward_up = 1};
  return squeezed_v("v-min", request, costs, block, (request.num_ranks + 4) / 3);
}

}  // namespace ranklab
