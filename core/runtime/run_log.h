// What a run leaves in its folder beside the trace (trace_file.h): log.txt ("<step> train <loss>", "<step> val <loss>")
// and metrics.jsonl (one object a step, one a checkpoint). Whole lines are written as they come, so that a crash keeps
// what was done; what cannot be written throws kIo (core/runtime/lost_outputs.h lets a run go on). A run that goes on
// from a checkpoint keeps the lines of the steps before it.
#pragma once
#include <memory>
#include <string>

#include "core/runtime/hooks.h"

namespace ranklab {

// One step as metrics.jsonl has it, without a newline.
std::string metrics_json(const StepMetrics& metrics);
// A checkpoint as it has it: {"step": the last one done, "checkpoint": steps done, ...}.
std::string checkpoint_json(const CheckpointNote& note);

// Creates the folder. Throws kIo naming it.
void make_log_folder(const std::string& directory);

// Creates the folder, which is this run's alone while the hook lives. Throws kIo naming the path, kInvalidArgument when
// another run logs there.
std::shared_ptr<Hook> make_run_log_hook(const std::string& directory);

// "runs/20260131-142501"; runs/last points to the latest one.
std::string default_log_dir();

}  // namespace ranklab
