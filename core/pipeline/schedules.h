// The schedules by name. A new one is a file in schedules/ and a row in schedules.cpp. Torch-free. Thread rule: pure
// functions.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/pipeline/schedule.h"

namespace ranklab {

struct ScheduleKind {
  const char* name;
  const char* about;
  const char* source;  // paper
  int chunks;          // stages of one chain per rank; 0: the caller chooses
  Schedule (*make)(const ScheduleRequest& request, const ScheduleCosts& costs);
  bool groups = false;  // takes ScheduleRequest::group_size
};

// Limits of a request.
inline constexpr int kMostPipelineRanks = 1024;
inline constexpr int kMostMicrobatches = 65536;
inline constexpr int kMostChunks = 64;
inline constexpr int64_t kMostCells = int64_t{1} << 22;  // stages x microbatches

std::span<const ScheduleKind> schedule_kinds();
// Throws kInvalidArgument with the nearest name.
const ScheduleKind& find_schedule_kind(const std::string& name);
// Throws kInvalidArgument for an unknown name (with the nearest one), or for sizes that the schedule does not support
// (with both sizes and the nearest legal ones). Only schedules that are searched use `costs`.
Schedule make_schedule(const std::string& name, const ScheduleRequest& request, const ScheduleCosts& costs = {});

// Whether interleaved 1F1B can have groups of this size (ScheduleRequest::group_size). Smaller ones would have passed
// the last rank before the first rank has its next stage's input, so that ranks would idle in the middle of a step.
bool is_interleaved_group(int group, int num_ranks, int num_microbatches);

Schedule make_gpipe(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_1f1b(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_interleaved_1f1b(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_looped_bfs(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_zb_h1(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_zb_h2(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_zb_2p(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_zb_v(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_v_half(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_v_min(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_dualpipe(const ScheduleRequest& request, const ScheduleCosts& costs);
Schedule make_dualpipe_v(const ScheduleRequest& request, const ScheduleCosts& costs);

}  // namespace ranklab
