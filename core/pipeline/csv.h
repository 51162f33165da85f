// Schedules as files. Two dialects, because "B" has two meanings:
//   torch    what torch.distributed.pipelining writes and reads (2.11): a row per rank, cells 2F7, 2I7 (our B), 2W7,
//            2B7 (our BW), (2F7;5B3)OVERLAP_F_B, empty cells for idle steps; SEND_F, RECV_F, SEND_B, RECV_B are
//            checked and dropped, UNSHARD, RESHARD and REDUCE_GRAD dropped.
//   ranklab  the letters of action.h: 2F7, 2B7, 2W7, 2BW7, 2F7&5BW3, after a line "# ranklab: name=... chain=...";
//            other lines that begin with # are comments.
// Cost: O(file). Torch-free. Thread rule: pure functions, except for file access.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

enum class ScheduleDialect { kAuto, kRanklab, kTorch };
const char* name(ScheduleDialect dialect);
// "auto", "ranklab" or "torch"; throws kInvalidArgument for anything else.
ScheduleDialect schedule_dialect(const std::string& text);

struct ScheduleFile {
  Schedule schedule;
  ScheduleDialect dialect = ScheduleDialect::kAuto;  // the one it was read in
  int64_t messages = 0;                              // sends and receives in the file
  std::vector<std::string> message_problems;         // each names row and column; at most 20
};

// kAuto detects the dialect by cells that only one of them can contain: there must be a full backward. Throws kBadFile
// naming `where`, row and column for text that is not a schedule; whether the schedule is correct is checked by
// verify.h and message_problems.
ScheduleFile parse_schedule(std::string_view text, const std::string& where, ScheduleDialect dialect);
// The schedule is named after the file, unless the file contains a name.
ScheduleFile read_schedule(const std::string& path, ScheduleDialect dialect);

// Throws kInvalidArgument when the dialect cannot express it: torch has no second chain (DualPipe).
std::string schedule_csv(const Schedule& schedule, ScheduleDialect dialect);
// Written under a temporary name, then renamed.
void write_schedule(const Schedule& schedule, const std::string& path, ScheduleDialect dialect);

}  // namespace ranklab
