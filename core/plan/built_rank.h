// A rank of a run as it is before its first step, made on shapes: its model and optimizer, for whoever asks what they
// hold. Nothing is computed and no memory is taken. Thread rule: as record_step().
#pragma once
#include <functional>

#include "core/plan/step_record.h"

namespace ranklab {

struct StepContext;  // core/runtime/components.h

// `look` is called on the rank's thread. Parts: as record_step()'s; the default ones when left out.
void build_rank(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world,
                const std::function<void(StepContext&)>& look);

}  // namespace ranklab
