// The part of commands that needs LibTorch: libranklab_training.so, built along with the program and opened at the
// first call. Loading LibTorch takes a quarter of a second, which --help, an error or drawing a schedule avoid. Thread
// rule: main thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/config/config_options.h"
#include "cli/data/data_batch.h"
#include "cli/eval/eval_run.h"
#include "cli/generate/generate_run.h"
#include "cli/museum/museum_run.h"
#include "cli/parity/parity_request.h"
#include "cli/plan/measure_layouts.h"
#include "cli/plan/plan_memory.h"
#include "cli/plan/zero_map.h"
#include "cli/train/live_options.h"
#include "core/pipeline/pipeline_costs.h"
#include "core/plan/step_record.h"
#include "core/runtime/shapes/rank_pieces.h"

namespace ranklab {

struct TrainRequest {
  bool json = false;  // stdout: one JSON object per logged step, then one with the result
  LiveRunOptions live = {};
};

struct TrainingFunctions {
  // core/plan, on meta worlds
  StepRecord (*record_step)(const RunPlan&);
  StepRecord (*record_traced_step)(const RunPlan&);  // its traces contain the calls of every pass
  int64_t (*boundary_bytes)(const RunPlan&);
  PipelineCosts (*recorded_costs)(const RunPlan&);
  std::vector<NamedSlice> (*rank_pieces)(const RunPlan&, int global_rank);
  // Throws kCheckFailed with the first error that the types in a step on shapes show.
  void (*check_types)(const RunPlan&);
  void (*check_data)(const RunPlan&);  // core/runtime/training_data.h
  // Runs to the end; returns the process's exit code.
  int (*train)(const ConfigOptions&, const TrainRequest&);
  int (*print_data_batch)(const DataBatchOptions&);
  int (*run_exhibits)(const std::vector<const Exhibit*>&, const MuseumRunOptions&);
  // The main part of commands, called after their options were read and everything that can be rejected without
  // LibTorch was rejected. They return exit codes.
  int (*parity)(const ConfigOptions&, const ParityRequest&);
  int (*generate)(ConfigOptions&, const GenerateRequest&, const std::string& load);
  int (*eval)(ConfigOptions&, const EvalRequest&, const std::string& load);
  int (*plan_memory)(const RunPlan&, const PlanMemoryRequest&);
  int (*zero_map)(const RunPlan&, const ZeroMapRequest&);
  std::vector<MeasuredLayout> (*measure_layouts)(const LayoutPlanner&, const std::vector<PlannedLayout>&, int count);
};

// Throws kEnvironment if the module, or LibTorch, cannot be opened.
const TrainingFunctions& training_functions();

}  // namespace ranklab
