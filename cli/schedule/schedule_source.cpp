#include "cli/schedule/schedule_source.h"

#include <algorithm>
#include <filesystem>

#include "cli/common/trace_input.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/pipeline/overlap.h"
#include "core/trace/find_trace.h"

namespace ranklab {
namespace {

constexpr int kDefaultRanks = 4;
constexpr int kDefaultMicrobatches = 8;
constexpr int kDefaultChunks = 2;  // if a rank can hold several stages; with one: 1F1B or GPipe

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
                .want = std::to_string(in_file), .fix = "leave it out: the file already sets it");
}

Schedule named(const std::string& name, const ScheduleOptions& options, const ScheduleCosts& costs) {
  const ScheduleKind& kind = find_schedule_kind(name);
  const int chunks = kind.chunks == 0 ? kDefaultChunks : 1;
  return make_schedule(name,
                       {.num_ranks = options.num_ranks.value_or(kDefaultRanks),
                        .num_microbatches = options.num_microbatches.value_or(kDefaultMicrobatches),
                        .num_chunks = options.num_chunks.value_or(chunks),
                        .group_size = options.group_size,
                        .pairs = options.pairs},
                       costs);
}

// The costs of the schedule's stages; nothing if the user gives costs.
std::optional<PipelineCosts> known_costs(const Schedule& schedule, const ScheduleOptions& options) {
  if (options.model.gives_costs()) return costs_of_model(options.model, schedule);
  if (!options.of_trace) return {};
  const auto stages = static_cast<int>(options.of_trace->stages.size());
  RANKLAB_CHECK(stages == schedule.chain_length, ErrorKind::kInvalidArgument, .where = "--trace",
                .what = "the traced run has other stages than schedule " + schedule.name,
                .got = std::to_string(stages) + " stages in " + options.trace,
                .want = std::to_string(schedule.chain_length),
                .fix = "trace a run with as many stages, or choose --pp and --vpp to match");
  PipelineCosts costs = *options.of_trace;
  costs.stages.clear();
  for (int stage = 0; stage < schedule.num_stages(); ++stage)
    costs.stages.push_back(options.of_trace->stages[static_cast<size_t>(schedule.part(stage))]);
  return costs;
}

// The costs given by the user, with times replaced where a trace or model provides them.
ScheduleCosts costs_of_rank(const ScheduleOptions& options, const std::optional<PipelineCosts>& known) {
  ScheduleCosts costs = options.costs;
  if (!known) return costs;
  costs.f = known->mean.f;
  costs.b = known->mean.b;
  costs.w = known->mean.w;
  costs.c = known->mean.c;
  return costs;
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
    // The number of stages does not depend on costs, but the placement of W may.
    loaded.schedule = named(what, options, options.costs);
    loaded.known = known_costs(loaded.schedule, options);
    loaded.costs = costs_of_rank(options, loaded.known);
    if (loaded.known) loaded.schedule = named(what, options, loaded.costs);
  } else {
    loaded.file = read_schedule(what, schedule_dialect(options.dialect));
    loaded.schedule = std::move(loaded.file->schedule);
    check_agrees(what, "--pp", options.num_ranks, loaded.schedule.num_ranks());
    check_agrees(what, "--num-microbatches", options.num_microbatches, loaded.schedule.num_microbatches);
    check_agrees(what, "--vpp", options.num_chunks, loaded.schedule.chain_length / loaded.schedule.num_ranks());
    RANKLAB_CHECK(options.group_size == 0, ErrorKind::kInvalidArgument, .where = what,
                  .what = "--microbatch-group-size-per-virtual-pipeline-stage makes a schedule, and this is one",
                  .got = std::to_string(options.group_size), .want = "the name of a schedule",
                  .fix = "leave it out: the file already has its order");
    loaded.known = known_costs(loaded.schedule, options);
    loaded.costs = costs_of_rank(options, loaded.known);
  }
  if (options.pairs) loaded.schedule = overlap_neighbours(loaded.schedule);
  loaded.proof = verify_schedule(loaded.schedule, options.costs.weight_grad_memory);
  return loaded;
}

void require_sound(const LoadedSchedule& loaded, const std::string& what) {
  const std::vector<std::string> problems = loaded.problems();
  RANKLAB_CHECK(problems.empty(), ErrorKind::kCheckFailed, .where = what, .what = "the schedule is wrong",
                .got = problems.front(),
                .want = problems.size() > 1 ? "none of " + std::to_string(problems.size()) + " problems" : "",
                .fix = "ranklab schedule check " + shell_path(what) + " lists all that is wrong");
}

void read_costs(ScheduleOptions& options) {
  const ScheduleCosts none, given = options.costs;
  std::vector<std::string> ways;
  if (given.f != none.f || given.b != none.b || given.w != none.w || given.c != none.c)
    ways.emplace_back("--f, --b, --w or --c");
  if (!options.trace.empty()) ways.push_back("--trace " + options.trace);
  if (options.model.gives_costs()) ways.push_back("--preset " + options.model.preset);
  RANKLAB_CHECK(ways.size() < 2, ErrorKind::kInvalidArgument, .where = "ranklab schedule",
                .what = "the costs are given twice", .got = join(ways, " and "), .want = "one of them",
                .fix = "leave the others out");
  if (options.trace.empty()) return;
  const TracePrefix read = read_trace_input(find_trace(options.trace));
  if (!read.broken.empty()) log_warning("--trace: " + read.broken);
  options.of_trace = costs_of_trace(read.file);
}

PipelineTimeline time_of(const LoadedSchedule& loaded) {
  require_legal(loaded.costs);
  if (!loaded.known) return simulate(loaded.schedule, loaded.costs);
  return simulate(loaded.schedule, {loaded.known->stages, loaded.known->c, loaded.costs.pair_factor});
}

}  // namespace ranklab
