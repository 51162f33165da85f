#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/size_error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/config/context_choice.h"
#include "core/config/data_choice.h"
#include "core/config/diloco/diloco_choice.h"
#include "core/config/loss_scale_choice.h"
#include "core/config/lr_choice.h"
#include "core/config/pipeline_layout.h"
#include "core/config/precision_choice.h"
#include "core/config/precision_settings.h"
#include "core/config/quantization_split.h"
#include "core/config/recompute_choice.h"
#include "core/config/requirements.h"
#include "core/config/settings/fields.h"
#include "core/config/sharding.h"
#include "core/config/state_types.h"
#include "core/config/train_config.h"
#include "core/museum/exhibit.h"
#include "core/pipeline/overlap.h"
#include "core/pipeline/schedules.h"
#include "core/sim/software_terms.h"
#include "core/sim/what_if.h"
#include "core/spec/model_config.h"
#include "core/spec/moe_dispatcher_names.h"

namespace ranklab {

bool TrainConfig::pads_experts() const {
  const DispatcherText* dispatcher = dispatcher_text(moe_dispatcher);
  return pad_experts && model.moe.enabled() && model.moe.capacity_factor > 0 && dispatcher != nullptr &&
         dispatcher->pads;
}
namespace {

// Constraints between two numbers; each is checked separately by its row of config_fields().
void check_numbers(const TrainConfig& c) {
  RANKLAB_CHECK(c.eval_interval == 0 || c.eval_iters > 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--eval-iters is out of range", .got = std::to_string(c.eval_iters), .want = "1 or more",
                .fix = "raise it, or switch validation off with --eval-interval 0");
  RANKLAB_CHECK(!c.trace || c.trace_step_end < 0 || c.trace_step_end > std::max<int64_t>(c.trace_step_start, 0),
                ErrorKind::kInvalidArgument, .where = "config",
                .what = "--trace-step-end does not come after --trace-step-start",
                .got = strprintf("--trace-step-start %ld, --trace-step-end %ld", static_cast<long>(c.trace_step_start),
                                 static_cast<long>(c.trace_step_end)),
                .want = "a later end", .fix = "change one of them, or switch the trace off with --no-trace");
}

void check_data(const TrainConfig& c) {
  data_choices(c.data_path);
  data_choices(c.valid_data_path, "--valid-data-path");
  RANKLAB_CHECK(
      c.valid_data_path.empty() || c.validation_fraction == 0, ErrorKind::kInvalidArgument, .where = "config",
      .what = "--valid-data-path and --validation-fraction contradict each other",
      .got =
          strprintf("--valid-data-path %s, --validation-fraction %g", c.valid_data_path.c_str(), c.validation_fraction),
      .want = "one of them", .fix = "leave one of them out: with --valid-data-path all of --data-path is trained on");
  RANKLAB_CHECK(!c.mock_data || c.data_path.empty(), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--mock-data and --data-path contradict each other",
                .got = "--mock-data, --data-path " + c.data_path, .want = "one of them",
                .fix = "leave one of them out: --mock-data trains on generated sentences");
  RANKLAB_CHECK(!c.documents.any() || c.documents.eod_token < c.model.vocab_size, ErrorKind::kInvalidArgument,
                .where = "config", .what = "--eod-token is not a token of the vocabulary",
                .got = std::to_string(c.documents.eod_token),
                .want = "below --vocab-size " + std::to_string(c.model.vocab_size),
                .fix = "pass the token that ends a document in your data");
}

void check_hf_files(const TrainConfig& c) {
  const auto check = [](const std::string& flag, const std::string& text, const std::string& example) {
    RANKLAB_CHECK(text.empty() || nlohmann::json::parse(text, nullptr, false).is_object(), ErrorKind::kInvalidArgument,
                  .where = "config", .what = flag + " is not a JSON object", .got = quote(text),
                  .want = "an object in one line", .fix = "write it as in " + flag + " '" + example + "'");
  };
  check("--hf-generation-config", c.model.hf_generation_config, "{\"temperature\": 0.6}");
  check("--hf-tokenizer-config", c.model.hf_tokenizer_config, "{\"add_bos_token\": false}");
}

void check_sentinels(const TrainConfig& c) {
  const SentinelRules rules(c.sentinels.mode, c.sentinels.rules);
  RANKLAB_CHECK(c.sentinels.rules.find("action=checkpoint") == std::string::npos || !c.save_dir.empty(),
                ErrorKind::kInvalidArgument, .where = "--sentinel", .what = "a checkpoint has no folder",
                .got = quote(c.sentinels.rules), .want = "--save FOLDER", .fix = "add it, or take action=warn");
  RANKLAB_CHECK(c.sentinels.parity_interval > 0 || c.sentinels.rules.find("parity_") == std::string::npos,
                ErrorKind::kInvalidArgument, .where = "--sentinel", .what = "nothing measures parity in this run",
                .got = quote(c.sentinels.rules), .want = "--watch STEPS", .fix = "add it, or leave the entry out");
}

void check_dump(const TrainConfig& c) {
  RANKLAB_CHECK(c.dump_at.empty() || !c.dump_modules.empty(), ErrorKind::kInvalidArgument, .where = "--at",
                .what = "there is nothing to dump", .got = "--at " + quote(c.dump_at), .want = "--dump PATTERN with it",
                .fix = "name modules, as in --dump 'layers.1.*'");
}

void check_checkpoints(const TrainConfig& c) {
  const auto needs = [](bool holds, const std::string& flag, const std::string& other) {
    RANKLAB_CHECK(holds, ErrorKind::kInvalidArgument, .where = "config",
                  .what = flag + " has no effect without " + other, .got = flag + " alone", .want = other + " FOLDER",
                  .fix = "add " + other + ", or leave it out");
  };
  needs(c.save_interval == 0 || !c.save_dir.empty(), "--save-interval", "--save");
  needs(c.keep_last == 0 || !c.save_dir.empty(), "--keep-last", "--save");
  needs(c.load != "auto" || !c.save_dir.empty(), "--load auto", "--save");
  needs(!c.finetune || !c.load.empty(), "--finetune", "--load");
}

// A checkpoint stores every setting as JSON, which must be UTF-8: otherwise the first save would fail.
void check_saved_text(const TrainConfig& c) {
  if (c.save_dir.empty()) return;
  for (const ConfigField& field : config_fields()) {
    if (field.type != ConfigField::Type::kText || is_utf8(field.get(c))) continue;
    throw Error(ErrorKind::kInvalidArgument, {.where = "config",
                                              .what = (field.flags.empty() ? field.key : field.flags[0]) +
                                                      " is not UTF-8 text, which a checkpoint needs",
                                              .got = quote(shown_as_utf8(field.get(c))),
                                              .want = "UTF-8",
                                              .fix = "rename it (convmv, mv), or train without --save"});
  }
}

Schedule schedule_with(const TrainConfig& c, int64_t num_microbatches) {
  Schedule schedule = resolve_schedule(c, num_microbatches);
  return c.overlap_moe ? overlap_neighbours(schedule) : schedule;
}

void fill_pipeline(RunPlan& plan) {
  const TrainConfig& c = plan.config;
  plan.schedule = resolve_schedule(c, plan.num_microbatches);
  check_requirements(plan);
  if (c.overlap_moe) plan.schedule = overlap_neighbours(plan.schedule);
  plan.stage_layers = resolve_stage_layers(c, plan.schedule);
  plan.mtp_stage = resolve_mtp_stage(c);
}

// Every size that a growing batch passes through must be a whole number of microbatches that the schedule supports.
void fill_ramp_schedules(RunPlan& plan) {
  plan.ramp_schedules.clear();
  if (!plan.ramp.grows()) return;
  const int64_t unit = plan.micro_batch_size * plan.dp();
  int64_t cells = 0;
  for (const int64_t size : plan.ramp.sizes()) {
    cells += size / unit * plan.schedule.num_stages();
    RANKLAB_CHECK(cells <= kMostCells, ErrorKind::kInvalidArgument, .where = "--rampup-batch-size",
                  .what = "the schedules of all batch sizes have too many actions to list",
                  .got = plan.config.rampup_batch_size + " to --global-batch-size " + std::to_string(plan.ramp.whole),
                  .want = strprintf("stages x microbatches of all sizes: at most %ld", static_cast<long>(kMostCells)),
                  .fix = "pass a larger INCREMENT or --micro-batch-size");
    RANKLAB_CHECK(size % unit == 0, ErrorKind::kInvalidArgument, .where = "--rampup-batch-size",
                  .what = "a batch is not a whole number of microbatches of every data-parallel rank",
                  .got = strprintf("%ld sequences, micro batch %ld x dp %d", static_cast<long>(size),
                                   static_cast<long>(plan.micro_batch_size), plan.dp()),
                  .want = "multiples of " + std::to_string(unit),
                  .fix = "pass a START and an INCREMENT that are, or a smaller --micro-batch-size");
    if (size == plan.ramp.whole) continue;
    try {
      plan.ramp_schedules.emplace(size / unit, schedule_with(plan.config, size / unit));
    } catch (const Error& error) {
      ErrorText text = error.text();
      text.where = "--rampup-batch-size";
      text.got += ", a batch of " + std::to_string(size);
      throw Error(error.kind(), text);
    }
  }
}

// OpenMP keeps a record per thread on the stack and starts all threads at once: 10,000 work, 100,000 end in SIGSEGV.
void check_threads(const RunPlan& plan) {
  constexpr int64_t kMost = 4096;
  const TrainConfig& c = plan.config;
  const int64_t all = int64_t{c.threads_per_rank} * plan.mesh.world_size();
  RANKLAB_CHECK(c.threads_per_rank == 1 || all <= kMost, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--threads-per-rank gives too many threads in total",
                .got = std::to_string(plan.mesh.world_size()) + " ranks x " + std::to_string(c.threads_per_rank),
                .want = "at most " + std::to_string(kMost), .fix = "use --threads-per-rank 1 with many ranks");
}

// gbs = mbs x microbatches x dp
void fill_batch(RunPlan& plan) {
  const int64_t gbs = plan.config.global_batch_size;
  const int64_t dp = plan.dp();
  if (gbs % dp != 0)
    throw SizeError({.where = "config",
                     .what = "the data-parallel size does not divide --global-batch-size",
                     .got = "--global-batch-size " + std::to_string(gbs) + ", dp " + std::to_string(dp),
                     .want = "a multiple of " + std::to_string(dp) + ", for example " + nearest_multiples(gbs, dp),
                     .fix = "pass such a --global-batch-size, or another --dp"});
  const int64_t per_rank = gbs / dp;
  plan.num_microbatches = resolve_microbatches(plan.config, per_rank);
  plan.micro_batch_size = per_rank / plan.num_microbatches;
}

// Checks HSDP groups, each of which shards all states.
void check_replicas(const RunPlan& plan) {
  const TrainConfig& config = plan.config;
  const bool may_be_alone = config.parallel.replicas == 1 || config.diloco.enabled();
  RANKLAB_CHECK(may_be_alone || plan.mesh.size(Axis::kDpShard) > 1, ErrorKind::kInvalidArgument, .where = "config",
                .what = "every sharding group would have one rank",
                .got = "--num-distributed-optimizer-instances " + std::to_string(config.parallel.replicas) + ", dp " +
                       std::to_string(plan.replicas()),
                .want = "fewer groups than data-parallel ranks", .fix = "use --zero-stage 0 for plain replicas");
}

// Checks that throw by themselves: unsuitable dtypes of optimizer states, an invalid loss scale.
void check_kept(const RunPlan& plan) {
  state_types(plan);
  if (const auto rule = loss_scale_rule(plan.config)) LossScaler{*rule};
}

}  // namespace

bool ramp_reaches(const RunPlan& plan, const DataCursor& cursor) {
  return plan.ramp.samples_before(cursor.step) == cursor.samples;
}

RunPlan plan_from(RunPlan plan, const DataCursor& cursor) {
  plan.ramp.first_step = cursor.step;
  plan.ramp.first_sample = cursor.samples;
  fill_ramp_schedules(plan);
  return plan;
}

HardwareProfile profile_of(const TrainConfig& config) {
  HardwareProfile profile = load_hardware_profile(config.hardware, config.efficiency);
  profile.software = software_named(config.software);
  const bool same = !config.sequence_parallel.value_or(true);
  const LinearPrecision linear = precision_settings(config).recipe.linear;
  const auto scales = [&](Granularity each) {
    return linear.activation.quantized() && linear.activation.granularity == each && !scales_are_delayed(linear);
  };
  adapt_software(profile, {.recomputes_attention = recompute_policy(config).core_attention(),
                           .scales_rows = scales(Granularity::kRow),
                           .scales_tensors = scales(Granularity::kTensor),
                           .overlaps_tensors = config.tp_comm_overlap && !same,
                           .same_activations = same ? config.parallel.tp : 1});
  apply_what_if(profile, config.what_if);
  return profile;
}

RunPlan resolve(const TrainConfig& asked) {
  TrainConfig config = asked;
  check_ranges(config);
  apply_sep(config);
  settle_learning_rate(config);
  check_weight_decay(config);
  check_numbers(config);
  check_data(config);
  check_checkpoints(config);
  check_sentinels(config);
  check_hf_files(config);
  check_dump(config);
  bugs_named(config.inject);
  check_saved_text(config);
  check_requirements(config);
  PrecisionSettings precision = settle_precision(config);
  config.parallel.kv_copies = config.model.kv_copies(config.parallel.tp);
  config.parallel.cp_heads = head_exchange_ranks(config);
  settle_diloco(config);
  RunPlan plan{.config = config, .mesh = DeviceMesh(config.parallel), .profile = profile_of(config)};
  plan.config.parallel = plan.mesh.dims();
  check_threads(plan);
  plan.sequence_parallel = config.sequence_parallel.value_or(config.parallel.tp > 1);
  validate(config.model, config.parallel.tp, plan.sequence_parallel);
  const ParallelDims& dims = plan.config.parallel;
  validate_experts(config.model,
                   {.tp = dims.tp, .ep = dims.ep, .etp = dims.etp, .sequence_parallel = plan.sequence_parallel});
  check_context(plan);
  plan.zero_stage = resolve_zero_stage(config);
  check_replicas(plan);
  plan.precision = precision_policy(std::move(precision), config.model);
  check_kept(plan);
  fill_batch(plan);
  check_quantization_split(plan);
  fill_pipeline(plan);
  plan.ramp = BatchRamp::parse(plan.config.rampup_batch_size, plan.config.global_batch_size);
  fill_ramp_schedules(plan);
  check_recompute(plan);
  plan.bucket_bytes =
      config.ddp_bucket_bytes > 0 ? config.ddp_bucket_bytes : find_backend(config.backend).usual_bucket_bytes;
  return plan;
}

}  // namespace ranklab
