// How a run splits its model into pipeline stages, and which schedule it follows: resolves the configuration's text
// into numbers. Torch-free. Thread rule: pure functions, except for reading a schedule file.
#pragma once
#include <functional>
#include <vector>

#include "core/config/train_config.h"
#include "core/spec/model_unit.h"

namespace ranklab {

// The number of microbatches for a data-parallel rank that has `sequences` sequences: what the configuration requests,
// or else one; with a pipeline the smallest legal count of at least 2 pp, a multiple of pp if one exists. Throws when
// --micro-batch-size and --num-microbatches contradict each other or do not divide the sequences.
int64_t resolve_microbatches(const TrainConfig& config, int64_t sequences);

// Whether the schedule passes microbatches through a rank's stages in groups (TrainConfig::microbatch_group).
bool has_microbatch_groups(const TrainConfig& config);

// The schedule by name, or from a CSV file. Throws with the schedule's requirement and the nearest legal value.
Schedule resolve_schedule(const TrainConfig& config, int64_t num_microbatches);

// Layers per stage: --pipeline-layout if given; else an even split in which the first stages take one more layer each;
// or, unless "even" was requested, a split that counts the head (core/pipeline/balanced_split.h), if it makes the
// fullest stage at least 5 % smaller.
std::vector<int64_t> resolve_stage_layers(const TrainConfig& config, const Schedule& schedule);

// RunPlan::mtp_stage, as derived from --pipeline-layout.
int resolve_mtp_stage(const TrainConfig& config);

// The pipeline ranks that hold a model part for which has(part) is true, ascending.
std::vector<int> ranks_holding(const Schedule& schedule, const std::function<bool(int part)>& has);

// Whether several pipeline ranks have the same layers (DualPipe).
bool holds_layers_twice(const Schedule& schedule);

int64_t first_layer(const RunPlan& plan, int part);
// The layers of a pipeline rank's stages, without MTP modules.
std::vector<int64_t> layers_of_rank(const RunPlan& plan, int pp_rank);
// The pipeline ranks that hold this unit of the model, ascending.
std::vector<int> pipeline_holders(const RunPlan& plan, const ModelUnit& unit);

}  // namespace ranklab
