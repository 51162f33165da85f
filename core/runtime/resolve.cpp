#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/model_config.h"
#include "core/pipeline/overlap.h"
#include "core/runtime/device_choice.h"
#include "core/runtime/loss_scale_choice.h"
#include "core/runtime/pipeline_layout.h"
#include "core/runtime/precision_choice.h"
#include "core/runtime/quantization_split.h"
#include "core/runtime/recompute_choice.h"
#include "core/runtime/sharding.h"
#include "core/runtime/state_types.h"
#include "core/runtime/train_config.h"

namespace ranklab {
namespace {

void check_positive(const char* flag, int64_t value) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  RANKLAB_CHECK(value > 0 && value <= kLargest, ErrorKind::kInvalidArgument, .where = "config",
                .what = std::string(flag) + " is out of range", .got = std::to_string(value), .want = "1 or more");
}
void check_not_negative(const char* flag, double value) {
  RANKLAB_CHECK(value >= 0 && std::isfinite(value), ErrorKind::kInvalidArgument, .where = "config",
                .what = std::string(flag) + " must not be negative", .got = strprintf("%g", value),
                .want = "0 or more");
}
void check_below_one(const char* flag, double value) {
  RANKLAB_CHECK(value >= 0 && value < 1, ErrorKind::kInvalidArgument, .where = "config",
                .what = std::string(flag) + " is out of range", .got = strprintf("%g", value),
                .want = "0 <= value < 1");
}

void check_numbers(const TrainConfig& c) {
  check_positive("--global-batch-size", c.global_batch_size);
  check_positive("--log-interval", c.log_interval);
  check_positive("--num-virtual-stages-per-pipeline-rank", c.virtual_stages);
  check_not_negative("--train-iters", static_cast<double>(c.train_iters));
  check_not_negative("--micro-batch-size", static_cast<double>(c.micro_batch_size));
  check_not_negative("--num-microbatches", static_cast<double>(c.num_microbatches));
  check_not_negative("--eval-interval", static_cast<double>(c.eval_interval));
  if (c.eval_interval > 0) check_positive("--eval-iters", c.eval_iters);
  check_not_negative("--lr", c.lr);
  check_not_negative("--min-lr", c.min_lr);
  check_not_negative("--weight-decay", c.weight_decay);
  check_not_negative("--clip-grad", c.clip_grad);
  check_not_negative("--adam-eps", c.adam_eps);
  check_not_negative("--hang-timeout", c.hang_timeout_s);
  check_not_negative("--rendezvous-timeout", c.rendezvous_timeout_s);
  check_not_negative("--sample-tokens", static_cast<double>(c.sample_tokens));
  check_not_negative("--sample-temperature", c.sample_temperature);
  check_not_negative("--gpus-per-node", c.gpus_per_node);
  check_not_negative("--lr-decay-iters", static_cast<double>(c.lr_decay_iters));
  check_not_negative("--trace-step-start", static_cast<double>(c.trace_step_start));
  check_not_negative("--ddp-bucket-bytes", static_cast<double>(c.ddp_bucket_bytes));
  check_below_one("--adam-beta1", c.adam_beta1);
  check_below_one("--adam-beta2", c.adam_beta2);
  check_below_one("--sgd-momentum", c.sgd_momentum);
  check_below_one("--validation-fraction", c.validation_fraction);
  RANKLAB_CHECK(!c.trace || c.trace_step_end > c.trace_step_start, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--trace-step-end does not come after --trace-step-start",
                .got = strprintf("--trace-step-start %ld, --trace-step-end %ld", static_cast<long>(c.trace_step_start),
                                 static_cast<long>(c.trace_step_end)),
                .want = "a later end", .fix = "or switch the trace off with --no-trace");
  RANKLAB_CHECK(c.min_lr <= c.lr, ErrorKind::kInvalidArgument, .where = "config", .what = "--min-lr is above --lr",
                .got = strprintf("--min-lr %g, --lr %g", c.min_lr, c.lr), .want = strprintf("at most %g", c.lr));
  const int64_t decay = c.lr_decay_iters > 0 ? c.lr_decay_iters : c.train_iters;
  RANKLAB_CHECK(c.lr_decay == LrDecay::kConstant || c.train_iters == 0 || c.lr_warmup_iters < decay,
                ErrorKind::kInvalidArgument, .where = "config", .what = "the warm-up is not shorter than the decay",
                .got = "--lr-warmup-iters " + std::to_string(c.lr_warmup_iters) + ", decay over " +
                       std::to_string(decay) + " steps",
                .want = "warm-up below " + std::to_string(decay),
                .fix = "lower --lr-warmup-iters or raise --train-iters");
}

void check_checkpoints(const TrainConfig& c) {
  check_not_negative("--save-interval", static_cast<double>(c.save_interval));
  check_not_negative("--keep-last", static_cast<double>(c.keep_last));
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
                .got = "--num-experts 0", .want = "a preset with experts (deepseek_v3_tiny)");
  RANKLAB_CHECK(c.simulated(), ErrorKind::kInvalidArgument, .where = "config",
                .what = "--overlap-moe-expert-parallel-comm is there for simulated ranks only",
                .got = "--backend " + c.backend, .want = "--backend cpu_sim, or leave it out");
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
                        (mtp ? "--mtp-num-layers 0" : "--no-tie-embeddings") + ", or a schedule without a V");
}

// OpenMP keeps a record of every thread on the stack, and starts them all at once: 100,000 end in SIGSEGV, 10,000
// never.
void check_threads(const RunPlan& plan) {
  constexpr int kMostOfARank = 1024;
  constexpr int64_t kMost = 4096;
  const TrainConfig& c = plan.config;
  RANKLAB_CHECK(c.threads_per_rank >= 1 && c.threads_per_rank <= kMostOfARank, ErrorKind::kInvalidArgument,
                .where = "config", .what = "--threads-per-rank is out of range",
                .got = std::to_string(c.threads_per_rank), .want = "1 to " + std::to_string(kMostOfARank),
                .fix = "more threads than processors make a run slower");
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
                        std::to_string(std::max(dp, gbs / dp * dp)) + " or " + std::to_string((gbs / dp + 1) * dp));
  const int64_t per_rank = gbs / dp;
  plan.num_microbatches = resolve_microbatches(plan.config, per_rank);
  plan.micro_batch_size = per_rank / plan.num_microbatches;
}

// Groups of data-parallel ranks that share out.
void check_replicas(const RunPlan& plan) {
  const TrainConfig& config = plan.config;
  RANKLAB_CHECK(config.parallel.replicas == 1 || plan.zero_stage > 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--num-distributed-optimizer-instances makes groups that share out, and nothing is shared out",
                .got = std::to_string(config.parallel.replicas) + ", ZeRO stage 0", .want = "--zero-stage 1, 2 or 3",
                .fix = "or leave it out");
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
  RANKLAB_CHECK(config.lr_warmup_iters >= -1, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--lr-warmup-iters is out of range", .got = std::to_string(config.lr_warmup_iters),
                .want = "-1 (a tenth of --train-iters), 0 or more");
  if (config.lr_warmup_iters < 0) config.lr_warmup_iters = config.train_iters / 10;
  check_numbers(config);
  check_checkpoints(config);
  check_simulation(config);
  check_device(config);
  PrecisionSettings precision = settle_precision(config);
  RANKLAB_CHECK(config.parallel.cp == 1, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--context-parallel-size is not supported by this model",
                .got = std::to_string(config.parallel.cp), .want = "1");
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
                .got = "--vocab-size " + std::to_string(config.model.vocab_size), .want = "256 or more");
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
