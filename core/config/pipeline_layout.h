// How a run splits its model into pipeline stages, and which schedule it follows: resolves the configuration's text
// into numbers. Torch-free. Thread rule: pure functions, except for reading a schedule file.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/spec/model_unit.h"

namespace ranklab {

// The microbatches of a data-parallel rank that has `sequences`: what the configuration requests, else one; with a
// pipeline the smallest legal count of at least 2 pp, a multiple of pp if one exists.
// Throws when --micro-batch-size and --num-microbatches contradict each other or do not divide the sequences.
int64_t resolve_microbatches(const TrainConfig& config, int64_t sequences);

// The schedule by name, or from a CSV file. Throws with the schedule's requirement and the nearest legal value.
Schedule resolve_schedule(const TrainConfig& config, int64_t num_microbatches);

// Layers per stage: --pipeline-layout; else an even split in which the first stages take one more each, or, where the
// head is work of a layer and more, one that counts it (core/pipeline/balanced_split.h).
std::vector<int64_t> resolve_stage_layers(const TrainConfig& config, const Schedule& schedule);

// RunPlan::mtp_stage, of --pipeline-layout.
int resolve_mtp_stage(const TrainConfig& config);

// The pipeline ranks that hold a model part for which has(part) is true, ascending.
std::vector<int> ranks_holding(const Schedule& schedule, const std::function<bool(int part)>& has);

// Whether several pipeline ranks have the same layers (DualPipe).
bool holds_layers_twice(const Schedule& schedule);

int64_t first_layer(const RunPlan& plan, int part);
// The pipeline ranks that hold that part of the model, ascending.
std::vector<int> pipeline_holders(const RunPlan& plan, const ModelUnit& unit);

}  // namespace ranklab
