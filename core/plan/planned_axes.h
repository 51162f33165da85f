// What context parallelism would move, which the runtime does not run yet, in the textbook's terms: ring attention (Liu
// et al. 2023, arXiv 2310.01889), each layer: cp-1 passes of K and V forward; backward cp-1 passes again and cp passes
// of their gradients, the last of which brings them home. A pass is 2 T kv/tp e (T tokens of a microbatch on a rank, e
// bytes an element), of latent attention T (its compressed vector) e. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

// Whether the runtime does not train with this axis larger than one.
bool is_planned(Axis axis);

// `plan`: a run whose data-parallel ranks are those of dp and cp together, each with a part of the sequences.
int64_t key_value_bytes(const RunPlan& plan);  // one pass of K and V
// The record of such a run becomes that of a mesh with context parallelism.
void add_ring_attention(StepRecord& record, const RunPlan& plan, int cp);

}  // namespace ranklab
