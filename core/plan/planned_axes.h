// What context parallelism would send, by formula, since the runtime does not run it yet: ring attention (Liu et al.
// 2023, arXiv 2310.01889), per layer: cp-1 passes of K and V forward; backward again cp-1 passes and cp passes of their
// gradients, the last of which returns them to their owner. A pass is 2 T kv/tp e (T tokens of a microbatch on a rank,
// e bytes per element), for latent attention T (its compressed vector) e. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

// True when the runtime cannot train with this axis larger than one.
bool is_planned(Axis axis);

// `plan`: a run whose dp is the product of dp and cp, each rank with a part of the sequences.
int64_t key_value_bytes(const RunPlan& plan);  // one pass of K and V
// Converts the record of such a run to that of a mesh with context parallelism.
void add_ring_attention(StepRecord& record, const RunPlan& plan, int cp);

}  // namespace ranklab
