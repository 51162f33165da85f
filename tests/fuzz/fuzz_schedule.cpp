// Any bytes as a schedule file, in each dialect: what is read is written and read again as the same, and what the
// verifier calls sound can be timed.
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/pipeline/csv.h"
#include "core/pipeline/simulate.h"
#include "core/pipeline/verify.h"

using namespace ranklab;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_as(std::string_view text, ScheduleDialect dialect) {
  const ScheduleFile file = parse_schedule(text, "fuzz", dialect);
  const std::string again = schedule_csv(file.schedule, ScheduleDialect::kRanklab);
  const ScheduleFile second = parse_schedule(again, "fuzz", ScheduleDialect::kRanklab);
  require(second.schedule.ranks == file.schedule.ranks && second.schedule.chain_length == file.schedule.chain_length);
  if (file.schedule.num_chains() == 1) {
    const std::string torch = schedule_csv(file.schedule, ScheduleDialect::kTorch);
    require(parse_schedule(torch, "fuzz", ScheduleDialect::kTorch).schedule.ranks == file.schedule.ranks);
  }
  if (verify_schedule(file.schedule).problems.empty()) require(simulate(file.schedule, ScheduleCosts{}).end > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const ScheduleDialect dialect : {ScheduleDialect::kAuto, ScheduleDialect::kTorch, ScheduleDialect::kRanklab}) {
    try {
      read_as({reinterpret_cast<const char*>(data), size}, dialect);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kBadFile) std::abort();
    }
  }
  return 0;
}
