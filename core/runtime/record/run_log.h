// What a run writes to its folder besides the trace (trace_file.h): log.txt ("<step> train <loss>", "<step> val
// <loss>"), metrics.jsonl (one object per step, validation and checkpoint) and, with sentinels, sentinels.jsonl (one
// object per step). Whole lines are written as they come, so a crash loses nothing earlier; a failed write throws kIo
// (core/runtime/observe/lost_outputs.h lets a run continue). A run resumed from a checkpoint keeps the lines of the
// steps before it.
#pragma once
#include <memory>
#include <string>

#include "core/runtime/hooks.h"

namespace ranklab {

// One step as a line of metrics.jsonl, without the newline.
std::string metrics_json(const StepMetrics& metrics);
// The sentinels' measurements in a step as a line of sentinels.jsonl: {"step": 3, "values": {tag: value}, "fired":
// [...]}.
std::string sentinels_json(int64_t step, const SentinelReport& report);
// A validation as a line of metrics.jsonl: {"step": the last step done, "validation_loss": ...}.
std::string validation_json(int64_t step, double loss);
// A checkpoint as a line of metrics.jsonl: {"step": the last step done, "checkpoint": steps done, ...}.
std::string checkpoint_json(const CheckpointNote& note);

// Creates the folder. Throws kIo naming it.
void make_log_folder(const std::string& directory);

// Creates the folder, which no other run may use while the hook exists; if there is a folder runs, runs/last then
// points to it. Throws kIo naming the path, and kInvalidArgument when another run logs there.
std::shared_ptr<Hook> make_run_log_hook(const std::string& directory);

// "runs/20260131-142501", made here and now.
std::string default_log_dir();

}  // namespace ranklab
