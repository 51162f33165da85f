#include "core/config/pipeline_layout.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "core/base/batch_ramp.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/even_parts.h"
#include "core/base/size_error.h"
#include "core/base/text.h"
#include "core/pipeline/balanced_split.h"
#include "core/pipeline/csv.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/stage_layout.h"
#include "core/pipeline/verify.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

// The legal values nearest to `wanted` among the divisors of `total`, as text: "4 or 8".
std::string nearest_divisors(int64_t total, int64_t wanted) {
  int64_t below = 1, above = total;
  for (int64_t d = 1; d <= total / d; ++d) {  // up to the square root: a batch may have 2^40 sequences
    if (total % d != 0) continue;
    for (const int64_t divisor : {d, total / d}) {
      if (divisor <= wanted) below = std::max(below, divisor);
      if (divisor >= wanted) above = std::min(above, divisor);
    }
  }
  return below == above ? std::to_string(below) : std::to_string(below) + " or " + std::to_string(above);
}

void require_divisor(const char* flag, int64_t value, int64_t sequences) {
  if (sequences % value != 0)
    throw SizeError({.where = "config",
                     .what = std::string(flag) + " does not divide the sequences of a data-parallel rank",
                     .got = std::string(flag) + " " + std::to_string(value) + ", " + std::to_string(sequences) +
                            " sequences a rank (--global-batch-size / dp)",
                     .want = nearest_divisors(sequences, value),
                     .fix = "use one of these, or another --global-batch-size"});
}

// Batches of a data-parallel rank, which may grow: the size of the smallest, and the greatest common divisor of all.
struct Batches {
  int64_t least, unit;
};

Batches batches_of(const TrainConfig& c, int64_t sequences) {
  const BatchRamp ramp = BatchRamp::parse(c.rampup_batch_size, c.global_batch_size);
  const int64_t dp = c.global_batch_size / sequences;
  const int64_t unit = ramp.divisor();
  if (!ramp.grows() || unit % dp != 0) return {sequences, sequences};
  return {ramp.least() / dp, unit / dp};
}

// Without a pipeline, microbatches as large as the greatest common divisor of all batches, so one if batches do not
// grow. With a pipeline, the size at which the smallest batch has the least legal count of at least 2 pp (a multiple of
// pp if one exists), which keeps the bubble small; larger batches then have more microbatches of that size.
int64_t default_microbatches(const TrainConfig& c, int64_t sequences) {
  const int64_t pp = c.parallel.pp;
  const auto [least, unit] = batches_of(c, sequences);
  if (pp == 1) return sequences / unit;
  const int64_t most = std::min<int64_t>(least, kMostMicrobatches);
  for (const int64_t multiple : {pp, int64_t{1}}) {
    for (int64_t count = 2 * pp; count <= most; ++count) {
      if (least % count == 0 && unit % (least / count) == 0 && count % multiple == 0)
        return sequences / (least / count);
    }
  }
  return sequences;
}

bool is_file(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".csv") || std::filesystem::is_regular_file(text);
}

// A schedule file defines its own number of ranks, stages and microbatches.
Schedule schedule_from_file(const TrainConfig& c, int64_t num_microbatches) {
  const std::string& path = c.pipeline_schedule;
  Schedule schedule = read_schedule(path, ScheduleDialect::kAuto).schedule;
  require_sound(schedule);
  const auto require = [&](const char* flag, const char* what, int64_t mine, int64_t files) {
    RANKLAB_CHECK(mine == files, ErrorKind::kInvalidArgument, .where = "config",
                  .what = std::string("the schedule in ") + path + " is for a different number of " + what,
                  .got = std::string(flag) + " " + std::to_string(mine),
                  .want = std::string(flag) + " " + std::to_string(files),
                  .fix = "pass that, or write the file for the run: ranklab schedule export");
  };
  require("--pp", "pipeline ranks", c.parallel.pp, schedule.num_ranks());
  require("--num-microbatches", "microbatches", num_microbatches, schedule.num_microbatches);
  return schedule;
}

// A layer for each stage from the second on, as far as there are layers: "0,1,1,0".
std::string sparse_layout(int64_t layers, int64_t stages) {
  std::string text = "0";
  for (int64_t stage = 1; stage < stages; ++stage) text += stage <= layers ? ",1" : ",0";
  return text;
}

// An even split, unless the head is so much work that another split makes the fullest stage 5 % smaller.
std::vector<int64_t> default_split(const ModelConfig& model, int64_t stages) {
  std::vector<int64_t> even = even_parts(model.num_layers, stages);
  if (stages == 1) return even;
  const LayerFlops flops = flops_of_layers(model, model.seq_length);
  const EndWork ends{.behind = flops.behind};
  std::vector<int64_t> balanced = balanced_split(flops.layers, ends, stages);
  const double least = fullest_stage(flops.layers, ends, balanced);
  return fullest_stage(flops.layers, ends, even) > 1.05 * least ? balanced : even;
}

}  // namespace

int64_t resolve_microbatches(const TrainConfig& c, int64_t sequences) {
  if (c.micro_batch_size > 0) require_divisor("--micro-batch-size", c.micro_batch_size, sequences);
  if (c.num_microbatches > 0) require_divisor("--num-microbatches", c.num_microbatches, sequences);
  if (c.micro_batch_size > 0 && c.num_microbatches > 0) {
    RANKLAB_CHECK(c.micro_batch_size * c.num_microbatches == sequences, ErrorKind::kInvalidArgument, .where = "config",
                  .what = "--micro-batch-size and --num-microbatches contradict each other",
                  .got = std::to_string(c.num_microbatches) + " microbatches of " + std::to_string(c.micro_batch_size) +
                         ", " + std::to_string(sequences) + " sequences a rank (--global-batch-size / dp)",
                  .want = "--num-microbatches " + std::to_string(sequences / c.micro_batch_size) +
                          " or --micro-batch-size " + std::to_string(sequences / c.num_microbatches),
                  .fix = "leave one of them out");
  }
  if (c.num_microbatches > 0) return c.num_microbatches;
  return c.micro_batch_size > 0 ? sequences / c.micro_batch_size : default_microbatches(c, sequences);
}

namespace {

// More stages per rank: what --vpp means in Megatron-LM, where it turns 1F1B into interleaved 1F1B.
std::string schedule_name(const TrainConfig& c) {
  return c.pipeline_schedule == "1f1b" && c.virtual_stages > 1 ? "interleaved-1f1b" : c.pipeline_schedule;
}

}  // namespace

bool has_microbatch_groups(const TrainConfig& c) {
  return !is_file(c.pipeline_schedule) && c.virtual_stages > 1 && find_schedule_kind(schedule_name(c)).groups;
}

Schedule resolve_schedule(const TrainConfig& c, int64_t num_microbatches) {
  if (is_file(c.pipeline_schedule)) return schedule_from_file(c, num_microbatches);
  RANKLAB_CHECK(
      num_microbatches <= kMostMicrobatches && c.virtual_stages <= kMostChunks, ErrorKind::kInvalidArgument,
      .where = "config", .what = "the pipeline is too long",
      .got = "--num-microbatches " + std::to_string(num_microbatches) + ", --vpp " + std::to_string(c.virtual_stages),
      .want = "at most " + std::to_string(kMostMicrobatches) + " and " + std::to_string(kMostChunks),
      .fix = "raise --micro-batch-size");
  const std::string name = schedule_name(c);
  try {
    const int64_t group = has_microbatch_groups(c) ? c.microbatch_group : 0;
    return make_schedule(name, {.num_ranks = c.parallel.pp,
                                .num_microbatches = static_cast<int>(num_microbatches),
                                .num_chunks = static_cast<int>(c.virtual_stages),
                                .group_size = static_cast<int>(group),
                                .pairs = c.overlap_moe});
  } catch (const Error& error) {  // a schedule does not know which setting requested it
    ErrorText text = error.text();
    text.where = "config";
    text.what = "--pipeline-schedule " + name + ": " + text.what;
    throw Error(error.kind(), text);
  }
}

std::vector<int64_t> resolve_stage_layers(const TrainConfig& c, const Schedule& schedule) {
  const int64_t stages = schedule.chain_length, layers = c.model.num_layers;
  const std::string count =
      std::to_string(stages) + " stages (" + schedule.name + ", --pp " + std::to_string(c.parallel.pp) + ")";
  if (c.pipeline_layout.empty() || c.pipeline_layout == "even") {
    RANKLAB_CHECK(layers >= stages, ErrorKind::kInvalidArgument, .where = "config",
                  .what = "there are fewer layers than pipeline stages",
                  .got = "--num-layers " + std::to_string(layers) + ", " + count,
                  .want = "at least " + std::to_string(stages) + " layers",
                  .fix = "raise --num-layers, lower --pp or --vpp, or give some stages none (--pipeline-layout " +
                         sparse_layout(layers, stages) + ")");
    return c.pipeline_layout.empty() ? default_split(c.model, stages) : even_parts(layers, stages);
  }
  const StageLayout asked = parse_stage_layout(c.pipeline_layout);
  RANKLAB_CHECK(static_cast<int64_t>(asked.layers.size()) == stages, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--pipeline-layout has a different number of stages than the schedule",
                .got = counted(static_cast<int64_t>(asked.layers.size()), "stage") + " in " + quote(c.pipeline_layout),
                .want = count, .fix = "leave it out, say even, or change --pp or --vpp");
  const int64_t sum = std::accumulate(asked.layers.begin(), asked.layers.end(), int64_t{0});
  RANKLAB_CHECK(sum == layers, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--pipeline-layout does not add up to the model's layers",
                .got = quote(c.pipeline_layout) + ", together " + std::to_string(sum),
                .want = "--num-layers " + std::to_string(layers), .fix = "change a number, leave it out, or say even");
  RANKLAB_CHECK(asked.mtp_layers.value_or(c.model.mtp_num_layers) == c.model.mtp_num_layers,
                ErrorKind::kInvalidArgument, .where = "config",
                .what = "--pipeline-layout has a different number of modules m than the model",
                .got = quote(c.pipeline_layout) + ", with " + std::to_string(*asked.mtp_layers),
                .want = "--mtp-num-layers " + std::to_string(c.model.mtp_num_layers), .fix = "make them equal");
  return asked.layers;
}

int resolve_mtp_stage(const TrainConfig& c) {
  if (c.pipeline_layout.empty() || c.pipeline_layout == "even") return -1;
  return parse_stage_layout(c.pipeline_layout).mtp_stage;
}

std::vector<int> ranks_holding(const Schedule& schedule, const std::function<bool(int part)>& has) {
  std::set<int> ranks;
  for (int stage = 0; stage < schedule.num_stages(); ++stage) {
    if (has(schedule.part(stage))) ranks.insert(schedule.rank(stage));
  }
  return {ranks.begin(), ranks.end()};
}

bool holds_layers_twice(const Schedule& schedule) {
  for (int part = 0; part < schedule.chain_length; ++part)
    if (ranks_holding(schedule, [&](int held) { return held == part; }).size() > 1) return true;
  return false;
}

int64_t first_layer(const RunPlan& plan, int part) {
  return std::accumulate(plan.stage_layers.begin(), plan.stage_layers.begin() + part, int64_t{0});
}

std::vector<int64_t> layers_of_rank(const RunPlan& plan, int pp_rank) {
  std::vector<int64_t> layers;
  for (const int stage : plan.schedule.stages_of(pp_rank)) {
    const int part = plan.schedule.part(stage);
    const int64_t first = first_layer(plan, part);
    for (int64_t i = 0; i < plan.stage_layers[static_cast<size_t>(part)]; ++i) layers.push_back(first + i);
  }
  return layers;
}

std::vector<int> pipeline_holders(const RunPlan& plan, const ModelUnit& unit) {
  const Schedule& s = plan.schedule;
  return ranks_holding(s, [&](int part) {
    const bool is_last = part == s.chain_length - 1;
    const bool predicts = plan.mtp_stage < 0 ? is_last : part == plan.mtp_stage;
    if (unit.place == ModelUnit::Place::kFirst)
      return part == 0 || (is_last && unit.used_by_last) || (predicts && unit.used_by_mtp);
    if (unit.place == ModelUnit::Place::kMtp) return predicts;
    if (unit.place == ModelUnit::Place::kLast) return is_last;
    const int64_t first = first_layer(plan, part);
    return unit.layer >= first && unit.layer < first + plan.stage_layers[static_cast<size_t>(part)];
  });
}

}  // namespace ranklab
