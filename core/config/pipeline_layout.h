// How a run cuts its model into pipeline stages, and which schedule it follows: from the configuration's words to
// numbers. Torch-free. Thread rule: pure functions, but for the schedule's file.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/spec/model_unit.h"

namespace ranklab {

// The microbatches of a data-parallel rank that has `sequences`: what the configuration asks for, else one; in a
// pipeline the smallest count from 2 pp on that is legal, a multiple of pp if there is one.
// Throws when --micro-batch-size and --num-microbatches contradict each other or do not divide the sequences.
int64_t resolve_microbatches(const TrainConfig& config, int64_t sequences);

// The schedule by name, or from a CSV file. Throws naming what it needs and the nearest legal value.
Schedule resolve_schedule(const TrainConfig& config, int64_t num_microbatches);

// Layers of each stage: --pipeline-layout, else even, the first stages taking one more each where it does not divide.
std::vector<int64_t> resolve_stage_layers(const TrainConfig& config, const Schedule& schedule);

// The pipeline ranks that hold a part of the model for which this is true, ascending.
std::vector<int> ranks_holding(const Schedule& schedule, const std::function<bool(int part)>& has);

int64_t first_layer(const RunPlan& plan, int part);
// The pipeline ranks that hold that part of the model, ascending.
std::vector<int> pipeline_holders(const RunPlan& plan, const ModelUnit& unit);

}  // namespace ranklab
