#include "core/config/settings/fields.h"

#include <cmath>

#include "core/base/named_rows.h"
#include "core/config/device_choice.h"
#include "core/config/settings/field_makers.h"
#include "core/config/sharding.h"
#include "core/pipeline/schedules.h"
#include "core/sim/what_if.h"

namespace ranklab {
namespace {

using namespace fields;

void add_sharding(FieldRows& rows) {
  rows.begin("Parallelism");
  std::vector<std::string> strategies = {"auto"};
  std::string numbered;
  for (const ZeroStage& stage : kZeroStages) {
    numbered +=
        (numbered.empty() ? " " : ", ") + std::string(stage.strategy) + " " + std::to_string(strategies.size() - 1);
    strategies.emplace_back(stage.strategy);
  }
  rows.number("parallel.zero_stage", {"--zero-stage"},
              "ZeRO stage: shard optimizer states (1), also gradients (2), also parameters (3) over "
              "data-parallel ranks; 0: nothing; -1: not given",
              RANKLAB_FIELD(zero_stage), within(-1, kZeroStages.size() - 1, zero_stage_numbers(0)));
  rows.flag("parallel.use_distributed_optimizer", {"--use-distributed-optimizer"}, "use at least ZeRO stage 1",
            RANKLAB_FIELD(use_distributed_optimizer));
  rows.text("parallel.sharding_strategy", {"--data-parallel-sharding-strategy"}, "the same stages by name:" + numbered,
            RANKLAB_FIELD(sharding_strategy), strategies);
  rows.number("parallel.replicas", {"--num-distributed-optimizer-instances", "--data-parallel-replicate-degree"},
              "HSDP: number of groups of dp ranks; each group shards the whole state (1: one group)",
              RANKLAB_FIELD(parallel.replicas), count(1));
}

void add_parallel(FieldRows& rows) {
  rows.begin("Parallelism");
  rows.number("parallel.world_size", {"--world-size", "--ranks"}, "number of ranks", RANKLAB_FIELD(parallel.world),
              within(1, 131072));
  rows.number("parallel.tp", {"--tensor-model-parallel-size", "--tp"},
              "tensor-parallel size (becomes 1 once another parallel size or the world size is given)",
              RANKLAB_FIELD(parallel.tp), count(1));
  rows.number("parallel.pp", {"--pipeline-model-parallel-size", "--pp"},
              "pipeline-parallel size (becomes 1 once another parallel size or the world size is given)",
              RANKLAB_FIELD(parallel.pp), count(1));
  rows.number("parallel.vpp", {"--num-virtual-stages-per-pipeline-rank", "--vpp"},
              "pipeline stages per rank (more than 1: interleaved-1f1b, looped-bfs)", RANKLAB_FIELD(virtual_stages),
              count(1));
  rows.number("parallel.microbatch_group_size_per_vp_stage",
              {"--microbatch-group-size-per-virtual-pipeline-stage", "--microbatch-group-size-per-vp-stage"},
              "interleaved 1F1B: microbatches that pass one stage of a rank before its next one begins (0: the fewest "
              "possible, one per rank if that divides them)",
              RANKLAB_FIELD(microbatch_group), within(0, kMostMicrobatches));
  rows.text("parallel.pipeline_schedule", {"--pipeline-schedule"},
            "pipeline schedule: a name (ranklab schedule list) or a CSV file", RANKLAB_FIELD(pipeline_schedule));
  rows.text("parallel.pipeline_layout", {"--pipeline-layout", "--pipeline-model-parallel-layout"},
            "layers of each stage, e.g. 2,2,3,1 (0: only the embedding or the head); or Megatron-Core's "
            "pattern, e.g. Et*3|(tt|)*29m|L, which can give MTP modules their own stage; or even (default: "
            "even, with fewer layers in the last stage if the head costs a layer or more)",
            RANKLAB_FIELD(pipeline_layout));
  rows.number("parallel.dp", {"--data-parallel-size", "--dp"}, "data-parallel size (0: derived from the world size)",
              RANKLAB_FIELD(parallel.dp), count(0));
  add_context(rows);
  rows.number("parallel.ep", {"--expert-model-parallel-size", "--ep"},
              "expert-parallel size: experts are sharded over this many ranks of a pipeline stage",
              RANKLAB_FIELD(parallel.ep), count(1));
  rows.number("parallel.etp", {"--expert-tensor-parallel-size", "--etp"},
              "expert tensor-parallel size: ranks that split each expert", RANKLAB_FIELD(parallel.etp), count(1));
  rows.flag(
      "parallel.sequence_parallel", {"--sequence-parallel", "--sp"},
      "sequence parallelism: split activations over tp along the sequence between linear layers (default: when tp > 1)",
      RANKLAB_FIELD(sequence_parallel));
  rows.flag("parallel.tp_comm_overlap", {"--tp-comm-overlap"},
            "overlap the collectives of sequence parallelism with the matrix products before or after them",
            RANKLAB_FIELD(tp_comm_overlap));
  rows.text("parallel.order", {"--order"}, "rank order, fastest axis first", RANKLAB_FIELD(parallel.order));
  rows.text("parallel.backend", {"--backend", "--distributed-backend"},
            "backend that runs the ranks (ranklab list backends)", RANKLAB_FIELD(backend), row_names(backends()));
  rows.flag("parallel.check_calls", {"--check-calls"},
            "check that all ranks post the same collective before it runs (slow; always on for simulated ranks)",
            RANKLAB_FIELD(check_calls));
  rows.flag("parallel.canonical_reductions", {"--canonical-reductions"},
            "reduce in the same order as simulated ranks, for bit-equal results (slow)",
            RANKLAB_FIELD(canonical_reductions));
  rows.text("parallel.device", {"--device"},
            "device of tensors and kernels; simulated ranks share one GPU (auto: the backend's default, see "
            "ranklab list backends)",
            RANKLAB_FIELD(device), {kUsualDevice, kHostDevice, kGpuDevice});
  rows.flag("parallel.deterministic", {"--deterministic", "--deterministic-mode"},
            "use only GPU kernels that give the same bits every time (slower; CPU kernels always do)",
            RANKLAB_FIELD(deterministic));
  rows.flag("parallel.cuda_graph", {"--cuda-graph", "--enable-cuda-graph"},
            "capture a microbatch's forward and backward as one CUDA graph and replay it (needs --backend "
            "cuda and all layers on each rank)",
            RANKLAB_FIELD(cuda_graph));
  rows.text("parallel.attention_backend", {"--attention-backend"},
            "unfused keeps all scores in memory; 16-bit types on GPUs also have flash and fused (cuDNN) "
            "(auto: the fastest; flash with --deterministic)",
            RANKLAB_FIELD(attention_backend), {"auto", "flash", "fused", "unfused"});
  rows.flag("parallel.overlap_grad_reduce", {"--overlap-grad-reduce"}, "reduce gradient buckets during backward",
            RANKLAB_FIELD(overlap_grad_reduce));
  rows.flag("parallel.overlap_param_gather", {"--overlap-param-gather"},
            "ZeRO 1 and 2: gather updated parameters during the next forward, not at the end of a step",
            RANKLAB_FIELD(overlap_param_gather));
  rows.choice("parallel.grad_sync", {"--grad-sync"},
              "when ZeRO 2 and 3 reduce gradients: once per step, or after each microbatch, so that no rank "
              "holds whole gradients",
              {"step", "microbatch"}, RANKLAB_FIELD(grad_sync));
  rows.number("parallel.ddp_bucket_bytes", {"--ddp-bucket-bytes"},
              "gradient bucket size in bytes (0: chosen by the backend)", RANKLAB_FIELD(ddp_bucket_bytes), count(0));
  add_sharding(rows);
}

void add_training(FieldRows& rows) {
  rows.begin("Training");
  rows.number("train.train_iters", {"--train-iters", "--steps"}, "optimizer steps", RANKLAB_FIELD(train_iters),
              count(0));
  rows.number("train.train_samples", {"--train-samples"},
              "sequences to train on; sets --train-iters to this / global batch size (0: use --train-iters)",
              RANKLAB_FIELD(train_samples), count(0));
  rows.number("train.global_batch_size", {"--global-batch-size", "--gbs"}, "sequences per step",
              RANKLAB_FIELD(global_batch_size), count(1));
  rows.number("train.global_batch_tokens", {"--global-batch-tokens"},
              "tokens per step; sets --global-batch-size to this / --seq-length (0: use --global-batch-size)",
              RANKLAB_FIELD(global_batch_tokens), count(0));
  rows.text(
      "train.rampup_batch_size", {"--rampup-batch-size"},
      "batch size ramp-up: \"START INCREMENT SAMPLES\" grows the batch from START to --global-batch-size by INCREMENT "
      "over the first SAMPLES sequences; \"0:SIZE SAMPLES:SIZE ...\" sets SIZE once SAMPLES sequences are consumed",
      RANKLAB_FIELD(rampup_batch_size));
  rows.number("train.micro_batch_size", {"--micro-batch-size", "--mbs"},
              "sequences per microbatch (0: global batch / dp / microbatches)", RANKLAB_FIELD(micro_batch_size),
              count(0));
  rows.number("train.num_microbatches", {"--num-microbatches"},
              "microbatches of each dp rank per step (0: from --micro-batch-size, else 1; with pp, 2 pp or more)",
              RANKLAB_FIELD(num_microbatches), count(0));
  rows.choice("train.accumulation", {"--grad-accumulation"}, "order in which microbatch gradients are added",
              {"sequential", "pairwise"}, RANKLAB_FIELD(accumulation));
  rows.number("train.seed", {"--seed"}, "seed of weights, data order, dropout and sampling", RANKLAB_FIELD(seed),
              at_least(0));
  rows.text("train.params_dtype", {"--params-dtype"}, "type of parameters and activations", RANKLAB_FIELD(params_dtype),
            {"fp32", "fp64", "bf16", "fp16"});
  rows.flag("train.bf16", {"--bf16"}, "bf16 parameters, activations and gradients; fp32 master weights and moments",
            RANKLAB_FIELD(bf16));
  add_optimizers(rows);
  add_diloco(rows);
  rows.number("optim.clip_grad", {"--clip-grad"}, "clip gradients to this global norm (0: no clipping)",
              RANKLAB_FIELD(clip_grad), at_least(0));
}

void add_data(FieldRows& rows) {
  rows.begin("Data");
  rows.text("data.path", {"--data-path"},
            "text file or folder of token shards; or several with weights (0.7 A 0.3 B) or weighted by size "
            "(A B) (default: the Debian corpus)",
            RANKLAB_FIELD(data_path));
  rows.flag("data.mock", {"--mock-data"}, "train on generated sentences instead of a corpus", RANKLAB_FIELD(mock_data));
  add_documents(rows);
  rows.text("data.valid_path", {"--valid-data-path"},
            "separate validation data, in the syntax of --data-path (default: a part of the training data)",
            RANKLAB_FIELD(valid_data_path));
  rows.number("data.validation_fraction", {"--validation-fraction"},
              "fraction of the training samples held out for validation", RANKLAB_FIELD(validation_fraction),
              below_one());
  rows.number("data.eval_interval", {"--eval-interval"}, "steps between validations (0: never)",
              RANKLAB_FIELD(eval_interval), count(0));
  rows.number("data.eval_iters", {"--eval-iters"}, "global batches per validation", RANKLAB_FIELD(eval_iters),
              count(0));
}

void add_simulation(FieldRows& rows) {
  rows.begin("Simulation");
  rows.text("sim.hardware", {"--hardware"}, "profile of the simulated GPU, or a .toml file", RANKLAB_FIELD(hardware));
  rows.choice("sim.efficiency", {"--efficiency"},
              "speed of simulated kernels and collectives: the datasheet's peak, or as measured on real hardware",
              {"datasheet", "measured"}, RANKLAB_FIELD(efficiency));
  rows.text("sim.software", {"--software"},
            "with --efficiency measured: software whose kernels and collectives are simulated (ranklab list software)",
            RANKLAB_FIELD(software));
  rows.text("sim.what_if", {"--what-if"},
            "another machine: peak (TFLOP/s), memory, nvlink, nic (GB/s), = NUMBERx (times) or = NUMBER; with "
            "--efficiency measured other software: " +
                what_if_terms() + " (launches and pieces in microseconds): nvlink=2x,slowest=0",
            RANKLAB_FIELD(what_if));
  rows.number("sim.gpus_per_node", {"--gpus-per-node"}, "GPUs per node, connected by fast links (0: the profile's)",
              RANKLAB_FIELD(gpus_per_node), count(0));
  rows.text("sim.collectives", {"--collectives"},
            "implementation of collectives: direct access to the peers' memory, or Gloo's messages (same bits)",
            RANKLAB_FIELD(collectives), {"direct", "gloo"});
  rows.text("sim.transport", {"--transport"},
            "transport of Gloo: inproc (memory between threads, unix sockets between processes of a host) or tcp",
            RANKLAB_FIELD(transport), {"inproc", "tcp"});
  rows.number("sim.hang_timeout_s", {"--hang-timeout"}, "seconds until a silent rank is reported (0: never)",
              RANKLAB_FIELD(hang_timeout_s), within(0, kWeekSeconds));
  rows.number("sim.rendezvous_timeout_s", {"--rendezvous-timeout"},
              "seconds that rank processes wait for each other at start", RANKLAB_FIELD(rendezvous_timeout_s),
              within(0, kWeekSeconds));
  rows.number("sim.threads_per_rank", {"--threads-per-rank"}, "math threads of each rank",
              RANKLAB_FIELD(threads_per_rank), within(1, 1024));
  rows.text("sim.gemm", {"--gemm"}, "library of fp32 GEMMs: auto chooses by processor, fastest measures",
            RANKLAB_FIELD(gemm), {"auto", "mkl", "onednn", "fastest"});
}

void add_output(FieldRows& rows) {
  rows.begin("Output");
  rows.text("log.dir", {"--log-dir"}, "folder for log.txt, metrics.jsonl and the trace (default: runs/<time>)",
            RANKLAB_FIELD(log_dir));
  rows.text("log.tensorboard_dir", {"--tensorboard-dir"}, "folder for a TensorBoard event file (default: none)",
            RANKLAB_FIELD(tensorboard_dir));
  rows.number("log.interval", {"--log-interval"}, "print every N steps", RANKLAB_FIELD(log_interval), count(1));
  rows.flag("log.max_attention_logit", {"--log-max-attention-logit"},
            "record the largest attention logit of each step (on with --qk-clip)",
            RANKLAB_FIELD(log_max_attention_logit));
  rows.flag("trace.enabled", {"--trace"}, "record the timeline", RANKLAB_FIELD(trace));
  rows.text("trace.level", {"--trace-level"},
            "detail of the trace: phases of a step, also actions and collectives, also modules, also kernels "
            "(FLOPs, bytes, bound)",
            RANKLAB_FIELD(trace_level), {"step", "action", "module", "kernel"});
  rows.number("trace.step_start", {"--trace-step-start", "--profile-step-start"},
              "first traced step (-1: the first of the run)", RANKLAB_FIELD(trace_step_start),
              count(-1, "-1 (the first of the run), 0 or more"));
  rows.number("trace.step_end", {"--trace-step-end", "--profile-step-end"},
              "first step no longer traced (-1: 20 after the first)", RANKLAB_FIELD(trace_step_end),
              count(-1, "-1 (20 after the first), 0 or more"));
  rows.flag("trace.profile", {"--profile"},
            "also record every kernel of rank 0 in the traced steps, as a PyTorch profile (Kineto)",
            RANKLAB_FIELD(profile));
  rows.flag("log.zero_debug", {"--zero-debug"},
            "print which rank owns which part of each parameter, and what each step reduces, gathers and frees",
            RANKLAB_FIELD(zero_debug));
  rows.flag("log.check_gradient_types", {"--check-gradient-types"},
            "in the first step, check over which axis each tensor is replicated, varying or partial; end the "
            "run if a reduction is missing, done twice or over the wrong ranks",
            RANKLAB_FIELD(check_gradient_types));
  rows.number("sample.tokens", {"--sample-tokens"}, "tokens of text to generate at the end (0: none)",
              RANKLAB_FIELD(sample_tokens), count(0));
  rows.text("sample.prompt", {"--sample-prompt"}, "prompt of the sample", RANKLAB_FIELD(sample_prompt));
  rows.number("sample.temperature", {"--sample-temperature"}, "sampling temperature (0: always the likeliest token)",
              RANKLAB_FIELD(sample_temperature), within(0, 1000));
}

std::vector<ConfigField> make_fields() {
  FieldRows rows;
  add_model(rows);
  add_rotary(rows);  // rotary settings are also in table "model", which a TOML file may open only once
  add_hugging_face(rows);
  add_latent_attention(rows);
  add_linear_attention(rows);
  add_mamba(rows);
  add_yarn(rows);
  add_experts(rows);
  add_parallel(rows);
  add_training(rows);
  add_precision(rows);
  add_memory(rows);
  add_checkpoints(rows);
  add_data(rows);
  add_simulation(rows);
  add_sentinels(rows);
  add_output(rows);
  add_dump(rows);
  add_museum(rows);
  return rows.take();
}

}  // namespace

bool ConfigRange::holds(double value) const {
  return std::isfinite(value) && (without_least ? value > least : value >= least) &&
         (without_most ? value < most : value <= most);
}

std::string ConfigRange::text() const {
  if (!words.empty()) return words;
  if (without_most) return to_text(least) + " <= value < " + to_text(most);
  if (most >= kMostCounted) return without_least ? "above " + to_text(least) : to_text(least) + " or more";
  return to_text(least) + " to " + strprintf("%.15g", most);
}

void check_ranges(const TrainConfig& config) {
  for (const ConfigField& field : config_fields()) {
    if (!field.number || field.range.holds(field.number(config))) continue;
    std::string want = field.range.text();
    // The upper limit of a count is mentioned only to a user who exceeded it.
    if (field.range.most == kMostCounted && field.number(config) > kMostCounted)
      want += ", and at most " + strprintf("%.15g", kMostCounted);
    throw Error(ErrorKind::kInvalidArgument, {.where = "config",
                                              .what = join(field.flags, " / ") + " is out of range",
                                              .got = field.flags[0] + " " + field.get(config),
                                              .want = want,
                                              .fix = fields::usual(field)});
  }
}

const std::vector<ConfigField>& config_fields() {
  static const std::vector<ConfigField> kFields = make_fields();
  return kFields;
}

const ConfigField* find_field(const std::string& key) {
  const auto it = std::ranges::find(config_fields(), key, &ConfigField::key);
  return it == config_fields().end() ? nullptr : &*it;
}

const ConfigField& field_named(const std::string& key_or_flag) {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields()) {
    names.push_back(field.key);
    names.insert(names.end(), field.flags.begin(), field.flags.end());
    const bool match =
        field.key == key_or_flag || std::find(field.flags.begin(), field.flags.end(), key_or_flag) != field.flags.end();
    if (match) return field;
  }
  throw Error(ErrorKind::kInvalidArgument, {.where = "config",
                                            .what = "unknown setting",
                                            .got = quote(key_or_flag),
                                            .fix = did_you_mean(key_or_flag, names, "see `ranklab train --help-all`")});
}

bool is_model_setting(std::string_view key) {
  constexpr std::string_view kTables[] = {"model.", "mla.", "linear_attention.", "mamba.", "yarn.", "moe.", "mtp."};
  return std::ranges::any_of(kTables, [&](std::string_view table) { return key.starts_with(table); });
}

std::string words_of(const ConfigField& field, const std::string& value) {
  const std::string& flag = field.flags.at(0);
  if (field.kind != ConfigField::Kind::kFlag) return flag + " " + value;
  return value == "true" ? flag : "--no-" + flag.substr(2);
}

void set_config_field(TrainConfig& config, const std::string& key_or_flag, const std::string& value) {
  field_named(key_or_flag).set(config, value);
}

}  // namespace ranklab
