#include "cli/schedule_source.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr int kDefaultRanks = 4;
constexpr int kDefaultMicrobatches = 8;
constexpr int kDefaultChunks = 2;  // where a rank may hold several stages: one is 1F1B or GPipe

bool is_name(const std::string& what) {
  const auto kinds = schedule_kinds();
  return std::any_of(kinds.begin(), kinds.end(), [&](const ScheduleKind& kind) { return what == kind.name; });
}

bool looks_like_a_path(const std::string& what) {
  std::error_code ignored;
  return what.find('/') != std::string::npos || what.find('.') != std::string::npos ||
         std::filesystem::exists(what, ignored);
}

void check_agrees(const std::string& path, const char* flag, std::optional<int> given, int in_file) {
  RANKLAB_CHECK(!given || *given == in_file, ErrorKind::kInvalidArgument, .where = path,
                .what = std::string(flag) + " differs from the file", .got = std::to_string(given.value_or(0)),
                .want = std::to_string(in_file), .fix = "leave it out: a file tells it itself");
}

Schedule named(const std::string& name, const ScheduleOptions& options) {
  const ScheduleKind& kind = find_schedule_kind(name);
  const int chunks = kind.chunks == 0 ? kDefaultChunks : 1;
  return make_schedule(name,
                       {.num_ranks = options.num_ranks.value_or(kDefaultRanks),
                        .num_microbatches = options.num_microbatches.value_or(kDefaultMicrobatches),
                        .num_chunks = options.num_chunks.value_or(chunks)},
                       options.costs);
}

}  // namespace

std::vector<std::string> LoadedSchedule::problems() const {
  std::vector<std::string> all;
  if (file) all = file->message_problems;
  all.insert(all.end(), proof.problems.begin(), proof.problems.end());
  return all;
}

LoadedSchedule load_schedule(const std::string& what, const ScheduleOptions& options) {
  LoadedSchedule loaded;
  if (is_name(what) || !looks_like_a_path(what)) {
    loaded.schedule = named(what, options);
  } else {
    loaded.file = read_schedule(what, schedule_dialect(options.dialect));
    loaded.schedule = std::move(loaded.file->schedule);
    check_agrees(what, "--pp", options.num_ranks, loaded.schedule.num_ranks());
    check_agrees(what, "--num-microbatches", options.num_microbatches, loaded.schedule.num_microbatches);
  }
  loaded.proof = verify_schedule(loaded.schedule, options.costs.weight_grad_memory);
  return loaded;
}

void require_sound(const LoadedSchedule& loaded, const std::string& what) {
  const std::vector<std::string> problems = loaded.problems();
  RANKLAB_CHECK(problems.empty(), ErrorKind::kCheckFailed, .where = what, .what = "the schedule is wrong",
                .got = problems.front(),
                .want = problems.size() > 1 ? "none of " + std::to_string(problems.size()) + " problems" : "",
                .fix = "ranklab schedule check " + what + " lists all that is wrong");
}

void measure(ScheduleOptions& options) {
  if (options.trace.empty()) return;
  const ScheduleCosts none, given = options.costs;
  RANKLAB_CHECK(given.f == none.f && given.b == none.b && given.w == none.w && given.c == none.c,
                ErrorKind::kInvalidArgument, .where = "--trace", .what = "the costs are given twice",
                .got = "--trace " + options.trace + " and --f, --b, --w or --c", .want = "one of them");
  options.measured = costs_of_trace(read_chrome_trace(options.trace));
  options.costs = options.measured->mean;
  options.costs.pair_factor = given.pair_factor;
  options.costs.weight_grad_memory = given.weight_grad_memory;
}

PipelineTimeline time_of(const LoadedSchedule& loaded, const ScheduleOptions& options) {
  require_legal(options.costs);
  if (!options.measured) return simulate(loaded.schedule, options.costs);
  const auto stages = static_cast<int>(options.measured->stages.size());
  RANKLAB_CHECK(stages == loaded.schedule.chain_length, ErrorKind::kInvalidArgument, .where = "--trace",
                .what = "the traced run has other stages than schedule " + loaded.schedule.name,
                .got = std::to_string(stages) + " stages in " + options.trace,
                .want = std::to_string(loaded.schedule.chain_length),
                .fix = "trace a run with as many stages, or choose --pp and --vpp to match");
  PipelineTiming timing{{}, options.costs.c, options.costs.pair_factor};
  for (int stage = 0; stage < loaded.schedule.num_stages(); ++stage)
    timing.stages.push_back(options.measured->stages[static_cast<size_t>(loaded.schedule.part(stage))]);
  return simulate(loaded.schedule, timing);
}

}  // namespace ranklab
