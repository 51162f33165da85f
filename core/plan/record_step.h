// Records a step: the training code itself runs on shapes (backends/meta), so any model, layout, recipe or user-defined
// layer is planned without code here. For each pipeline rank one rank runs in place of its whole stage (stand_ins.h);
// if it could be one of several, each is recorded and the slowest record counts. A first step creates what stays
// (optimizer states), and the second step is recorded. Cost: for each such rank two steps of operators that compute
// nothing, about a microsecond each. Thread rule: the thread that would train.
#pragma once
#include "core/config/train_config.h"
#include "core/plan/stand_ins.h"
#include "core/plan/step_record.h"

namespace ranklab {

// With DiLoCo, a plan whose second step ends with the outer update of the first fragment.
RunPlan with_outer_update(RunPlan plan);

// With the default parts, or a program's own model, optimizer and schedule. Of the data, only the documents in batches
// are read, and only if attention stays within documents; data that cannot be opened is ignored
// (StepRecord::documents_unknown). Throws what a rank of the run throws.
StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world,
                       RepeatedCalls calls = RepeatedCalls::kCounted);
// `first`: the form of the first of the two steps (record_step.cpp); the record is the same for both.
enum class FirstStep { kShort, kWhole };
StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& parts,
                       FirstStep first = FirstStep::kShort);

}  // namespace ranklab
