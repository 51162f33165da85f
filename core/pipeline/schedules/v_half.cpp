// V-Half (Qi et al., arXiv 2405.15362): at most p/2+1 activations on every rank, half of 1F1B's peak, and with F = B =
// W at most half of 1F1B's bubble.
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/v_block.h"

namespace ranklab {

Schedule make_v_half(const ScheduleRequest& request, const ScheduleCosts& costs) {
  const VBlock block = {.forward_down = 2, .forward_up = 1, .backward_down = 2, .backward_up = 1};
  return squeezed_v("v-half", request, costs, block, (request.num_ranks + 2) / 2);
}

}  // namespace ranklab
