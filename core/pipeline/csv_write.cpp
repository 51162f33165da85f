#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/text.h"
#include "core/pipeline/csv.h"

namespace ranklab {
namespace {

const char* torch_letters(ActionKind kind) {
  if (kind == ActionKind::kB) return "I";
  return kind == ActionKind::kBW ? "B" : letters(kind);
}

std::string torch_cell(const Action& a) {
  const auto one = [](int stage, const char* letter, int microbatch) {
    return std::to_string(stage) + letter + std::to_string(microbatch);
  };
  if (a.kind != ActionKind::kFBW) return one(a.stage, torch_letters(a.kind), a.microbatch);
  return "(" + one(a.stage, "F", a.microbatch) + ";" + one(a.back_stage, "B", a.back_microbatch) + ")OVERLAP_F_B";
}

// A header's value ends at a space.
std::string header_name(std::string name) {
  if (name.size() > 64) name.resize(64);
  for (char& c : name)
    if (c <= ' ' || c > '~') c = '_';
  return name.empty() ? "unnamed" : name;
}

}  // namespace

std::string schedule_csv(const Schedule& schedule, ScheduleDialect dialect) {
  const bool torch = dialect == ScheduleDialect::kTorch;
  RANKLAB_CHECK(!torch || schedule.num_chains() == 1, ErrorKind::kInvalidArgument, .where = "schedule " + schedule.name,
                .what = "torch's files cannot express it",
                .got = strprintf("%d chains of %d stages", schedule.num_chains(), schedule.chain_length),
                .want = "one chain", .fix = "use --dialect ranklab, or dualpipe-v, which has one chain");
  std::string out;
  if (!torch)
    out += "# ranklab: name=" + header_name(schedule.name) + " chain=" + std::to_string(schedule.chain_length) + "\n";
  for (const std::vector<Action>& actions : schedule.ranks) {
    for (size_t i = 0; i < actions.size(); ++i)
      out += (i > 0 ? "," : "") + (torch ? torch_cell(actions[i]) : to_text(actions[i]));
    out += "\n";
  }
  return out;
}

void write_schedule(const Schedule& schedule, const std::string& path, ScheduleDialect dialect) {
  write_file_atomically(path, schedule_csv(schedule, dialect),
                        {.where = "schedule " + schedule.name,
                         .what = "cannot write the file",
                         .fix = "give --out a path that can be written"});
}

}  // namespace ranklab
