// Output of `ranklab debug`: where ranks are, tensors, events. Thread rule: pure: numbers in, text out.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/live/stepper.h"

namespace ranklab {

// One line per breakpoint that was hit, then one line with the state of the world.
std::string pause_text(const StepperState& state);
// One line: what the rank did between two pauses, and where it is now.
std::string move_text(const RankState& before, const RankState& after);
// A row per rank: coordinates, activity, boundary, virtual time, and what a blocked rank waits for.
std::string where_text(const StepperState& state, const RunPlan& plan);
// A row per rank: coordinates, pipeline stages and groups.
std::string ranks_text(const RunPlan& plan);
std::string breakpoints_text(const StepperState& state);
std::string tensor_text(const TensorSummary& tensor, int global_rank);
std::string events_text(const std::vector<RecordedEvent>& events, size_t count);
std::string hash_text(uint64_t hash);  // 16 hexadecimal digits

}  // namespace ranklab
