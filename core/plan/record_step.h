// Records a step: the training code itself runs on shapes (backends/meta), so any model, layout, recipe or user-defined
// layer is planned without code here. One rank of each pipeline rank runs and represents the others of its stage, which
// behave alike: the one that owns most of what data-parallel ranks shard. Where that may be one of several (most
// arithmetic, most kernels, most matrices, most exchanged between nodes), each is recorded and the slowest record
// counts. A first step creates what stays (optimizer states), the second is recorded. Cost: for each such rank two
// steps of operators that compute nothing, about a microsecond each. Thread rule: the thread that would train.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

class World;               // core/comm/world.h
struct RuntimeComponents;  // core/runtime/components.h

// For each global rank the one that runs in its place.
using StandIns = std::vector<int>;
// Makes a world of shapes. Programs pass make_meta_world().
using ShapeWorldMaker = std::function<std::shared_ptr<World>(StandIns)>;

// The run as it is recorded: simulated, without files, validation and samples, its second step traced.
RunPlan plan_to_record(RunPlan plan);
// The first of each stage that attends longest.
StandIns first_stand_ins(const RunPlan& plan);

// With the default parts, or a program's own model, optimizer and schedule. Of the data only the documents in batches
// are read, where attention keeps within them; data that cannot be opened are left out (StepRecord::documents_unknown).
// Throws what a rank of the run throws.
StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world);
// `first`: of the two steps (short_first_step.h); the record is the same.
enum class FirstStep { kShort, kWhole };
StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& parts,
                       FirstStep first = FirstStep::kShort);

}  // namespace ranklab
