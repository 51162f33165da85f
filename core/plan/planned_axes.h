// What context parallelism would move, which the runtime does not run yet, in the textbook's terms: ring attention (Liu
// et al. 2023, arXiv 2310.01889), each layer: cp-1 passes of K and V forward; backward cp-1 passes again and cp passes
// of their gradients, the last of which brings them home. A pass is 2 T kv/tp e (T tokens of a microbatch on a rank, e
// bytes an element), of latent attention T (its compressed vector) e. Thread rule: pure.
#pragma once
#include "core/plan/step_walk.h"

namespace ranklab {

// Whether the runtime trains with this axis larger than one.
bool is_planned(Axis axis);

int64_t key_value_bytes(const StepShape& shape);  // one pass of K and V
void ring_attention_forward(const StepShape& shape, StepVisitor& visitor);
void ring_attention_backward(const StepShape& shape, StepVisitor& visitor);

}  // namespace ranklab
