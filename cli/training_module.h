// The part of commands that needs LibTorch: libranklab_training.so, built along with the program and opened at the
// first call. Loading LibTorch takes a quarter of a second, which --help, an error or drawing a schedule avoid. Thread
// rule: main thread.
#pragma once
#include <cstdint>
#include <vector>

#include "cli/config/config_options.h"
#include "cli/data/data_batch.h"
#include "cli/museum/museum_run.h"
#include "cli/train/live_options.h"
#include "core/pipeline/pipeline_costs.h"
#include "core/plan/rank_pieces.h"
#include "core/plan/step_record.h"

namespace ranklab {

struct TrainRequest {
  bool json = false;  // stdout: one JSON object per logged step, then one of the result
  LiveRunOptions live = {};
};

struct TrainingFunctions {
  // core/plan, on meta worlds
  StepRecord (*record_step)(const RunPlan&);
  int64_t (*boundary_bytes)(const RunPlan&);
  PipelineCosts (*recorded_costs)(const RunPlan&);
  std::vector<RankPiece> (*rank_pieces)(const RunPlan&, int global_rank);
  // Throws kCheckFailed with the first finding of the types that a step on shapes shows.
  void (*check_types)(const RunPlan&);
  // Runs to the end; returns the process's exit code.
  int (*train)(const ConfigOptions&, const TrainRequest&);
  int (*print_data_batch)(const DataBatchOptions&);
  int (*run_exhibits)(const std::vector<const Exhibit*>&, const MuseumRunOptions&);
};

// Throws kEnvironment where the module, or LibTorch, cannot be opened.
const TrainingFunctions& training_functions();

}  // namespace ranklab
