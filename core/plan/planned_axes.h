// What the axes that the runtime does not run yet would move, in the textbooks' terms. e bytes an element, h hidden,
// T = s b / cp tokens of a microbatch on a rank, T_l = T / tp with sequence parallelism.
//   pp  (which it runs) T_l h e forward to the next stage and back, per microbatch and boundary (Narayanan et al. 2021,
//       arXiv 2104.04473, section 3.2; with sequence parallelism activations travel sharded)
//   cp  ring attention (Liu et al. 2023, arXiv 2310.01889), each layer: cp-1 passes of K and V forward; backward cp-1
//       passes again and cp passes of their gradients, the last of which brings them home; a pass is 2 T kv/tp e
//   ep  dispatch and combine, forward and backward: four all_to_all a layer and microbatch, each of T_l topk h e, of
//       which (ep-1)/ep leave the rank under even routing (GShard, arXiv 2006.16668; Megatron-Core, arXiv 2504.14960)
//   etp the routed tokens are gathered before the experts and reduced after them, and the same pair backward
// Thread rule: pure.
#pragma once
#include "core/plan/step_walk.h"

namespace ranklab {

// Whether the runtime trains with this axis larger than one.
bool is_planned(Axis axis);

// A message of a ring or a pipeline: nothing when `times` is 0.
void send_to_neighbour(StepVisitor& visitor, Axis axis, int64_t bytes, int times);

int64_t key_value_bytes(const StepShape& shape);  // one pass of K and V
void ring_attention_forward(const StepShape& shape, StepVisitor& visitor);
void ring_attention_backward(const StepShape& shape, StepVisitor& visitor);
// The communication of a mixture-of-experts layer, in one direction (the other one is the same).
void expert_exchange(const StepShape& shape, StepVisitor& visitor);

}  // namespace ranklab
