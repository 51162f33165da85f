// Schedules as files. Two dialects, because one letter means two things:
//   torch    what torch.distributed.pipelining writes and reads (2.11): a row per rank, cells 2F7, 2I7 (our B), 2W7,
//   2B7
//            (our BW), (2F7;5B3)OVERLAP_F_B, empty cells for idle steps; SEND_F, RECV_F, SEND_B, RECV_B are matched and
//            dropped, UNSHARD, RESHARD and REDUCE_GRAD dropped.
//   ranklab  the letters of action.h: 2F7, 2B7, 2W7, 2BW7, 2F7&5BW3, after a line "# ranklab: name=... chain=...";
//            other lines that begin with # are comments.
// Cost: O(file). Torch-free. Thread rule: pure functions, but for the file.
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

// kAuto tells the dialect by what only one of them can mean: a full backward must be somewhere. Throws kBadFile naming
// `where`, row and column for what is no schedule at all; whether it is a right one is verify.h's and
// message_problems' matter.
ScheduleFile parse_schedule(std::string_view text, const std::string& where, ScheduleDialect dialect);
// The schedule's name is the file's, unless the file tells another.
ScheduleFile read_schedule(const std::string& path, ScheduleDialect dialect);

// Throws kInvalidArgument when the dialect cannot say it: torch knows no second chain (DualPipe).
std::string schedule_csv(const Schedule& schedule, ScheduleDialect dialect);
// Written under a temporary name, then renamed.
void write_schedule(const Schedule& schedule, const std::string& path, ScheduleDialect dialect);

}  // namespace ranklab
