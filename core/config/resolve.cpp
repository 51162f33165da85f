#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/config/config_fields.h"
#include "core/config/device_choice.h"
#include "core/config/loss_scale_choice.h"
#include "core/config/pipeline_layout.h"
#include "core/config/precision_choice.h"
#include "core/config/quantization_split.h"
#include "core/config/recompute_choice.h"
#include "core/config/sharding.h"
#include "core/config/state_types.h"
#include "core/config/train_config.h"
#include "core/pipeline/overlap.h"
#include "core/spec/model_config.h"

namespace ranklab {
namespace {

// What is wrong with two numbers together; each by itself is checked by its row of config_fields().
void check_numbers(const TrainConfig& c) {
  RANKLAB_CHECK(c.eval_interval == 0 || c.eval_iters > 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--eval-iters is out of range", .got = std::to_string(c.eval_iters), .want = "1 or more",
                .fix = "or switch validation off with --eval-interval 0");
  RANKLAB_CHECK(!c.trace || c.trace_step_end > c.trace_step_start, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--trace-step-end does not come after --trace-step-start",
                .got = strprintf("--trace-step-start %ld, --trace-step-end %ld", static_cast<long>(c.trace_step_start),
                                 static_cast<long>(c.trace_step_end)),
                .want = "a later end", .fix = "or switch the trace off with --no-trace");
  RANKLAB_CHECK(c.min_lr <= c.lr, ErrorKind::kInvalidArgument, .where = "config", .what = "--min-lr is above --lr",
                .got = strprintf("--min-lr %g, --lr %g", c.min_lr, c.lr), .want = strprintf("at most %g", c.lr),
                .fix = "lower --min-lr, or raise --lr");
  const int64_t decay = c.lr_decay_iters > 0 ? c.lr_decay_iters : c.train_iters;
  RANKLAB_CHECK(c.lr_decay == LrDecay::kConstant || c.train_iters == 0 || c.lr_warmup_iters < decay,
                ErrorKind::kInvalidArgument, .where = "config", .what = "the warm-up is not shorter than the decay",
                .got = "--lr-warmup-iters " + std::to_string(c.lr_warmup_iters) + ", decay over " +
                       std::to_string(decay) + " steps",
                .want = "warm-up below " + std::to_string(decay),
                .fix = "lower --lr-warmup-iters or raise --train-iters");
}

void check_data(const TrainConfig& c) {
  RANKLAB_CHECK(!c.mock_data || c.data_path.empty(), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--mock-data and --data-path contradict each other",
                .got = "--mock-data, --data-path " + c.data_path, .want = "one of them",
                .fix = "leave one of them out: --mock-data trains on generated sentences");
}

void check_checkpoints(const TrainConfig& c) {
  const auto needs = [](bool holds, const std::string& flag, const std::string& other) {
    RANKLAB_CHECK(holds, ErrorKind::kInvalidArgument, .where = "config",
                  .what = flag + " says nothing without " + other, .got = flag + " alone", .want = other + " FOLDER",
                  .fix = "add " + other + ", or leave it out");
  };
  needs(c.save_interval == 0 || !c.save_dir.empty(), "--save-interval", "--save");
  needs(c.keep_last == 0 || !c.save_dir.empty(), "--keep-last", "--save");
  needs(c.load != "auto" || !c.save_dir.empty(), "--load auto", "--save");
  needs(!c.finetune || !c.load.empty(), "--finetune", "--load");
}

// A checkpoint writes every setting down, as JSON, which has no other text: the first save would be lost.
void check_saved_text(const TrainConfig& c) {
  if (c.save_dir.empty()) return;
  for (const ConfigField& field : config_fields()) {
    if (field.type != ConfigField::Type::kText || is_utf8(field.get(c))) continue;
    throw Error(ErrorKind::kInvalidArgument, {.where = "config",
                                              .what = (field.flags.empty() ? field.key : field.flags[0]) +
                                                      " is no UTF-8 text, which a checkpoint needs",
                                              .got = quote(shown_as_utf8(field.get(c))),
                                              .want = "UTF-8",
                                              .fix = "rename it (convmv, mv), or train without --save"});
  }
}

// Whether a pipeline rank holds the first and the last part of the model, as a V does.
bool holds_both_ends(const Schedule& s) {
  if (s.chain_length == 1) return false;
  const std::vector<int> first = ranks_holding(s, [](int part) { return part == 0; });
  const std::vector<int> last = ranks_holding(s, [&](int part) { return part == s.chain_length - 1; });
  return std::find_first_of(first.begin(), first.end(), last.begin(), last.end()) != first.end();
}

// With dispatch and combine behind the compute of another microbatch.
Schedule overlapped(const TrainConfig& c, const Schedule& schedule) {
  RANKLAB_CHECK(c.model.moe.enabled(), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--overlap-moe-expert-parallel-comm hides the traffic of experts, and this model has none",
                .got = "--num-experts 0", .want = "a preset with experts (deepseek_v3_tiny)",
                .fix = "leave it out, or use such a preset");
  RANKLAB_CHECK(c.simulated(), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--overlap-moe-expert-parallel-comm is there for simulated ranks only",
                .got = "--backend " + c.backend, .want = "--backend cpu_sim, or leave it out", .fix = "leave it out");
  return overlap_neighbours(schedule);
}

// What the pipeline rules out.
void fill_pipeline(RunPlan& plan) {
  const TrainConfig& c = plan.config;
  plan.schedule = resolve_schedule(c, plan.num_microbatches);
  if (c.overlap_moe) plan.schedule = overlapped(c, plan.schedule);
  plan.stage_layers = resolve_stage_layers(c, plan.schedule);
  const bool mtp = c.model.mtp_num_layers > 0;  // its modules embed tokens, too
  const bool twice = (c.model.tie_embeddings || mtp) && holds_both_ends(plan.schedule);
  RANKLAB_CHECK(c.accumulation == Accumulation::kSequential || !twice, ErrorKind::kInvalidArgument, .where = "config",
                .what =
                    "pairwise accumulation needs every parameter in one stage of a rank, and rank 0 has the embedding "
                    "in two",
                .got = std::string("--grad-accumulation pairwise, ") +
                       (mtp ? "--mtp-num-layers above 0" : "--tie-embeddings") + ", --pipeline-schedule " +
                       plan.schedule.name,
                .want = std::string("--grad-accumulation sequential, ") +
                        (mtp ? "--mtp-num-layers 0" : "--no-tie-embeddings") + ", or a schedule without a V",
                .fix = "use one of them");
}

// OpenMP keeps a record of every thread on the stack, and starts them all at once: 100,000 end in SIGSEGV, 10,000
// never.
void check_threads(const RunPlan& plan) {
  constexpr int64_t kMost = 4096;
  const TrainConfig& c = plan.config;
  const int64_t all = int64_t{c.threads_per_rank} * plan.mesh.world_size();
  RANKLAB_CHECK(c.threads_per_rank == 1 || all <= kMost, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--threads-per-rank makes too many threads of all ranks",
                .got = std::to_string(plan.mesh.world_size()) + " ranks x " + std::to_string(c.threads_per_rank),
                .want = "at most " + std::to_string(kMost), .fix = "use --threads-per-rank 1 with many ranks");
}

// Settings of the simulated world that mean nothing on GPUs.
void check_simulation(const TrainConfig& c) {
  if (c.simulated()) return;
  const auto refuse = [](const char* flag, const std::string& value, const char* usual) {
    RANKLAB_CHECK(value == usual, ErrorKind::kInvalidArgument, .where = "config",
                  .what = std::string(flag) + " is for simulated ranks only",
                  .got = std::string(flag) + " " + value + ", --backend cuda", .want = "--backend cpu_sim",
                  .fix = "leave it out");
  };
  refuse("--collectives", c.collectives, "direct");
  refuse("--transport", c.transport, "inproc");
  refuse("--gemm", c.gemm, "auto");
}

// gbs = mbs x microbatches x dp
void fill_batch(RunPlan& plan) {
  const int64_t gbs = plan.config.global_batch_size;
  const int64_t dp = plan.dp();
  RANKLAB_CHECK(gbs % dp == 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "the data-parallel size does not divide --global-batch-size",
                .got = "--global-batch-size " + std::to_string(gbs) + ", dp " + std::to_string(dp),
                .want = "a multiple of " + std::to_string(dp) + ", for example " +
                        std::to_string(std::max(dp, gbs / dp * dp)) + " or " + std::to_string((gbs / dp + 1) * dp),
                .fix = "pass such a --global-batch-size, or another --dp");
  const int64_t per_rank = gbs / dp;
  plan.num_microbatches = resolve_microbatches(plan.config, per_rank);
  plan.micro_batch_size = per_rank / plan.num_microbatches;
}

// Groups of data-parallel ranks that share out.
void check_replicas(const RunPlan& plan) {
  const TrainConfig& config = plan.config;
  RANKLAB_CHECK(config.parallel.replicas == 1 || plan.zero().optimizer, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--num-distributed-optimizer-instances makes groups that share out, and nothing is shared out",
                .got = std::to_string(config.parallel.replicas) + ", ZeRO stage 0",
                .want = "--zero-stage " + zero_stage_numbers(1), .fix = "or leave it out");
  RANKLAB_CHECK(config.parallel.replicas == 1 || plan.mesh.size(Axis::kDpShard) > 1, ErrorKind::kInvalidArgument,
                .where = "config", .what = "every group that shares out would have one rank",
                .got = "--num-distributed-optimizer-instances " + std::to_string(config.parallel.replicas) + ", dp " +
                       std::to_string(plan.dp()),
                .want = "fewer groups than data-parallel ranks", .fix = "use --zero-stage 0 for plain replicas");
}

// What refuses itself: types of what training keeps that make no sense, a loss scale that is none.
void check_kept(const RunPlan& plan) {
  state_types(plan);
  if (const auto rule = loss_scale_rule(plan.config)) LossScaler{*rule};
}

}  // namespace

RunPlan resolve(const TrainConfig& asked) {
  TrainConfig config = asked;
  check_ranges(config);
  if (config.lr_warmup_iters < 0) config.lr_warmup_iters = config.train_iters / 10;
  check_numbers(config);
  check_data(config);
  check_checkpoints(config);
  check_saved_text(config);
  check_simulation(config);
  check_device(config);
  PrecisionSettings precision = settle_precision(config);
  RANKLAB_CHECK(config.parallel.cp == 1, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--context-parallel-size is not supported by this model",
                .got = std::to_string(config.parallel.cp), .want = "1", .fix = "leave it out");
  config.parallel.kv_copies = config.model.kv_copies(config.parallel.tp);
  RunPlan plan{
      .config = config, .mesh = DeviceMesh(config.parallel), .profile = load_hardware_profile(config.hardware)};
  plan.config.parallel = plan.mesh.dims();
  check_threads(plan);
  plan.sequence_parallel = config.sequence_parallel.value_or(config.parallel.tp > 1);
  validate(config.model, config.parallel.tp, plan.sequence_parallel);
  const ParallelDims& dims = plan.config.parallel;
  validate_experts(config.model,
                   {.tp = dims.tp, .ep = dims.ep, .etp = dims.etp, .sequence_parallel = plan.sequence_parallel});
  RANKLAB_CHECK(config.model.vocab_size >= 256, ErrorKind::kInvalidArgument, .where = "config",
                .what = "the byte-level tokenizer needs 256 tokens",
                .got = "--vocab-size " + std::to_string(config.model.vocab_size), .want = "256 or more",
                .fix = "leave it out for the preset's");
  plan.zero_stage = resolve_zero_stage(config);
  check_replicas(plan);
  RANKLAB_CHECK(!config.optimizer_cpu_offload || config.on_gpu(), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--optimizer-cpu-offload moves optimizer states out of a GPU's memory",
                .got = "--backend " + config.backend + ", --device " + config.device,
                .want = "--device cuda or --backend cuda", .fix = "leave it out");
  plan.precision = precision_policy(std::move(precision), config.model);
  check_kept(plan);
  fill_batch(plan);
  check_quantization_split(plan);
  fill_pipeline(plan);
  check_delayed_scales(plan);
  check_recompute(plan);
  constexpr int64_t kGpuBucketBytes = 25 << 20, kSimBucketBytes = 1 << 20;
  plan.bucket_bytes = config.ddp_bucket_bytes > 0 ? config.ddp_bucket_bytes
                      : config.simulated()        ? kSimBucketBytes
                                                  : kGpuBucketBytes;
  return plan;
}

}  // namespace ranklab
