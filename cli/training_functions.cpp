// The functions and commands of the training module.
#include "backends/meta/meta_world.h"
#include "cli/common/command.h"
#include "cli/common/command_module.h"
#include "cli/parity/parity_run.h"
#include "cli/train/live_run.h"
#include "cli/training_module.h"
#include "core/plan/recorded_costs.h"
#include "core/plan/type_check.h"
#include "core/runtime/training_data.h"

namespace ranklab {
namespace {

int train(const ConfigOptions& options, const TrainRequest& request) {
  const LiveRunOptions& live = request.live;
  TrainRun run(options, {.json = request.json, .watched = live.any(), .start_paused = live.start_paused});
  return live.any() ? run_live(run, live) : run.run();
}

constexpr TrainingFunctions kFunctions = {
    .record_step = [](const RunPlan& plan) { return record_step(plan, make_meta_world); },
    .record_traced_step =
        [](const RunPlan& plan) { return record_step(plan, make_meta_world, RepeatedCalls::kTraced); },
    .boundary_bytes = [](const RunPlan& plan) { return boundary_bytes(plan, make_meta_world); },
    .recorded_costs = [](const RunPlan& plan) { return recorded_costs(plan, make_meta_world); },
    .rank_pieces = [](const RunPlan& plan, int rank) { return rank_pieces(plan, rank, make_meta_world); },
    .check_types = [](const RunPlan& plan) { types_of_step(plan, make_meta_world)->check(); },
    .check_data = check_named_data,
    .train = train,
    .print_data_batch = print_data_batch,
    .run_exhibits = run_exhibits,
    .parity = run_parity,
    .generate = run_generate,
    .eval = run_eval,
    .plan_memory = run_plan_memory,
    .zero_map = run_zero_map,
    .measure_layouts = measure_layouts};

}  // namespace
}  // namespace ranklab

extern "C" const ranklab::TrainingFunctions* ranklab_training_functions() { return &ranklab::kFunctions; }

RANKLAB_MODULE_COMMAND(debug)
RANKLAB_MODULE_COMMAND(launch)
RANKLAB_MODULE_COMMAND(doctor)
