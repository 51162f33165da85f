// One training run as numbers and names: filled from a preset and flags (settings/fields.h), checked once by resolve()
// and immutable afterwards. Flag names are Megatron-LM's. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/batch_ramp.h"
#include "core/base/dtype.h"
#include "core/base/zero_stage.h"
#include "core/comm/backend.h"
#include "core/comm/device_mesh.h"
#include "core/config/diloco/diloco_config.h"
#include "core/config/precision_config.h"
#include "core/config/settings/sentinel_rules.h"
#include "core/optim/lr_decay.h"
#include "core/optim/optimizer_list.h"
#include "core/optim/weight_decay_schedule.h"
#include "core/pipeline/schedule.h"
#include "core/sim/hardware_profile.h"
#include "core/spec/context_exchange.h"
#include "core/spec/model_config.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

class PrecisionPolicy;  // core/precision/precision_policy.h

enum class Accumulation { kSequential, kPairwise };
enum class GradSync { kStep, kMicrobatch };

// Documents packed into sequences, in Megatron-LM's terms. Each document ends with the token eod_token.
struct DocumentSettings {
  bool reset_attention_mask = false;
  bool reset_position_ids = false;
  bool eod_mask_loss = false;
  int64_t eod_token = 0;

  bool resets() const { return reset_attention_mask || reset_position_ids; }
  bool any() const { return resets() || eod_mask_loss; }
};

// Monitoring of a run's numbers (core/config/settings/sentinel_rules.h).
struct SentinelSettings {
  SentinelMode mode = SentinelMode::kOff;
  std::string rules;                 // changes to the rows of the table
  int64_t interval = 0;              // steps between inspections of tensors; 0: 10, or 1 in debug mode
  int64_t probe_interval = 0;        // steps between forward passes of the probe; 0: 20, or 1 in debug mode
  int64_t drift_interval = 100;      // steps between comparisons of the replicas' weights; 0: never
  int64_t histogram_interval = 100;  // steps between histograms for TensorBoard; 0: none
  int64_t parity_interval = 0;  // steps between comparisons of tensors across ranks (--watch), in any mode; 0: none

  bool any() const { return mode != SentinelMode::kOff || parity_interval > 0; }

  int64_t steps_between_looks() const { return interval > 0 ? interval : mode == SentinelMode::kDebug ? 1 : 10; }
  int64_t steps_between_probes() const {
    return probe_interval > 0 ? probe_interval : mode == SentinelMode::kDebug ? 1 : 20;
  }
};

struct TrainConfig {
  std::string preset = "gpt_tiny";
  ModelConfig model;

  // Parallelism. dp is derived: world / (tp cp pp). A run that sets no size uses dp 2 x tp 2 x pp 2; see settle_layout
  // (settings/sources.h).
  ParallelDims parallel{.world = 8, .tp = 2, .pp = 2};
  std::optional<bool> sequence_parallel;  // unset: on when tp > 1
  bool tp_comm_overlap = false;           // with sequence parallelism: collectives overlap with their products
  ContextSplit context_split;             // how sequences are split over the cp ranks
  // for a2a+p2p: the number of neighbours that exchange heads, and the number of such groups; empty: derived
  std::vector<int64_t> context_sizes;
  int sep = 0;  // if above 0: one group of this size is both cp (which exchanges heads) and ep (apply_sep)
  std::string backend = backends().front().name;  // a name of backends() (core/comm/backend.h)
  bool check_calls = false;           // compare every collective call between ranks; simulated ranks always do
  bool canonical_reductions = false;  // reduce in the order of tree_reduce.h; simulated ranks always do
  std::string device = "auto";        // auto | cpu | cuda: where tensors and kernels are; auto is the backend's default
  bool deterministic = false;         // bitwise reproducible GPU kernels; CPU kernels always are
  // record a microbatch's forward and backward once as a CUDA graph, then launch it as a whole
  bool cuda_graph = false;

  // Experts.
  std::string moe_dispatcher = "alltoall";  // a name of dispatcher_names.h
  bool overlap_shared_experts = false;      // compute shared experts while tokens are sent to the others
  bool delay_weight_grads = false;          // compute experts' weight gradients while their tokens' are sent back
  bool pad_experts = false;                 // to their capacity, so that shapes do not depend on the routing
  bool overlap_moe = false;                 // overlap one microbatch's dispatch and combine with another's compute

  // Pipeline.
  std::string pipeline_schedule = "1f1b";  // a name of schedules.h, or a CSV file
  int64_t virtual_stages = 1;              // stages per rank, where the schedule lets the user choose
  int64_t microbatch_group = 0;            // of interleaved 1F1B (ScheduleRequest::group_size); 0: the fewest possible
  // layers of each stage: "2,2,3,1", or "even"; empty: balanced by work (pipeline_layout.h)
  std::string pipeline_layout;

  // Batch and schedule.
  int64_t train_iters = 200;
  int64_t train_samples = 0;        // above 0: train_iters is derived from it (batch_choice.h, steps_of_run())
  int64_t global_batch_size = 32;   // sequences
  int64_t global_batch_tokens = 0;  // above 0: global_batch_size is derived from it
  std::string rampup_batch_size;    // "START INCREMENT SAMPLES": smaller batches at the start (batch_ramp.h)
  int64_t micro_batch_size = 0;     // 0: derived from num_microbatches
  // per dp rank; 0: derived from micro_batch_size, else one (with a pipeline: 2 pp if possible)
  int64_t num_microbatches = 0;
  Accumulation accumulation = Accumulation::kSequential;
  uint64_t seed = 1234;
  std::string params_dtype = "fp32";  // fp32 | fp64 | bf16 | fp16
  bool bf16 = false;                  // bf16 parameters and activations; fp32 master weights and moments
  PrecisionConfig precision;

  // Optimizer.
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  double lr = 3e-3;
  double min_lr = 3e-4;
  LrDecay lr_decay = LrDecay::kCosine;
  int64_t lr_warmup_iters = -1;    // -1: derived from lr_warmup_fraction; if that is -1, too, a tenth of the run
  double lr_warmup_fraction = -1;  // as a fraction of the decay steps; -1: lr_warmup_iters decides
  double lr_warmup_init = 0;
  int64_t lr_decay_iters = 0;      // 0: train_iters
  int64_t lr_wsd_decay_iters = 0;  // 0: a tenth of the decay steps
  // The same three lengths, in sequences.
  int64_t lr_warmup_samples = -1;    // -1: lr_warmup_iters decides; if that is -1, too, a tenth of train_samples
  int64_t lr_decay_samples = 0;      // 0: lr_decay_iters decides; if that is 0, too, train_samples
  int64_t lr_wsd_decay_samples = 0;  // 0: lr_wsd_decay_iters decides
  WsdDecay lr_wsd_decay = WsdDecay::kExponential;
  double weight_decay = 0.1;
  WeightDecayStyle weight_decay_style = WeightDecayStyle::kConstant;
  double start_weight_decay = -1, end_weight_decay = -1;  // for a style that is not constant; -1: not given
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.95;
  double adam_eps = 1e-8;
  double sgd_momentum = 0.0;
  double lion_beta1 = 0.9;
  double lion_beta2 = 0.99;
  double muon_momentum = 0.95;
  bool muon_nesterov = true;
  int64_t muon_ns_steps = 5;           // Newton-Schulz iterations
  std::string muon_ns_dtype = "auto";  // dtype of these iterations: auto (that of the update) | bf16
  MuonDistribution muon_distribution = MuonDistribution::kDuplicated;
  double clip_grad = 1.0;  // 0: no clipping
  bool qk_clip = false;    // scale down the queries and keys of heads with large logits (core/optim/qk_clip.h)
  double qk_clip_alpha = 0.5;
  double qk_clip_threshold = 100;

  DilocoConfig diloco;

  // Data-parallel gradient reduction.
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = false;     // ZeRO 1 and 2: gather updated parameters during the next forward
  GradSync grad_sync = GradSync::kStep;  // how often gradients are reduced
  int64_t ddp_bucket_bytes = 0;          // 0: the backend's default

  // What data-parallel ranks shard instead of replicating. sharding.h derives one ZeRO stage from these three settings.
  int64_t zero_stage = -1;                 // -1: the next two settings decide, else 0
  bool use_distributed_optimizer = false;  // at least stage 1
  std::string sharding_strategy = "auto";  // Megatron's names for the stages

  // Activations and states that are recomputed or offloaded instead of kept in device memory.
  std::string recompute_granularity = "none";  // none | selective | full
  RecomputedModules recompute_modules = {};    // for selective
  std::string recompute_method = "block";      // for full: block | uniform
  int64_t recompute_num_layers = 0;            // block: per stage (0: all); uniform: layers per chunk (0: 1)
  bool optimizer_cpu_offload = false;          // keep optimizer states in host memory, for tensors on GPUs

  // Checkpoints.
  std::string save_dir;       // empty: none
  int64_t save_interval = 0;  // steps; 0: after the last step only
  int64_t keep_last = 0;      // checkpoints; 0: all
  bool async_save = true;     // written while training goes on
  std::string load;           // a folder of checkpoints, one checkpoint, or "auto": resume from save_dir if it has any
  bool finetune = false;      // loads only the weights; starts at step 0

  // GPU kernels, and which of their outputs are kept for backward.
  std::string attention_backend = "auto";  // auto | flash | fused | unfused
  bool keep_cheap_outputs = false;

  // Data.
  // in the notation of core/config/data_choice.h; empty: the Debian corpus, or generated sentences
  std::string data_path;
  bool mock_data = false;
  DocumentSettings documents;
  std::string valid_data_path;        // like data_path; empty: validation uses a part of the training data
  double validation_fraction = 0.05;  // of the training data; 0 where validation has its own data (settings/sources.h)
  int64_t eval_interval = 50;         // 0: never
  int64_t eval_iters = 4;

  // Simulation.
  bool virtual_time = true;
  std::string hardware = "h100-sxm";
  Efficiency efficiency = Efficiency::kDatasheet;
  std::string software = "ranklab";
  std::string what_if;
  int gpus_per_node = 0;               // 0: the hardware profile's value
  std::string collectives = "direct";  // direct | gloo
  std::string transport = "inproc";    // inproc | tcp
  double hang_timeout_s = 60;
  double rendezvous_timeout_s = 60;
  int threads_per_rank = 1;   // threads of the math library; more than 1 makes sense only for a single rank
  std::string gemm = "auto";  // auto | mkl | onednn | fastest

  SentinelSettings sentinels;
  std::string dump_modules;  // patterns of the modules and parameters whose tensors are written to files; empty: none
  std::string dump_at;       // when and where: core/config/dump_choice.h
  std::string inject;        // exhibits of the museum (core/museum), separated by commas: the run is wrong on purpose

  // Output.
  std::string log_dir;          // empty: runs/<time>
  std::string tensorboard_dir;  // empty: no event file
  int64_t log_interval = 1;
  bool log_max_attention_logit = false;
  bool trace = true;
  std::string trace_level = "module";  // trace_level.h
  int64_t trace_step_start = -1;       // -1: the first of the run
  int64_t trace_step_end = -1;         // exclusive; -1: 20 steps after the start (traced_steps.h)
  bool profile = false;                // also profile the kernels of the traced steps
  bool zero_debug = false;             // print which rank owns what
  // Check the types of the first step's tensors (core/spmd), and end the run where a reduction is missing or done
  // twice.
  bool check_gradient_types = false;
  int64_t sample_tokens = 200;  // 0: no sample at the end of the run
  std::string sample_prompt = "And the ";
  double sample_temperature = 0.8;

  // Dtype of parameters, activations and gradients.
  DType element_dtype() const {
    if (bf16) return DType::kBFloat16;
    if (precision.fp16) return DType::kFloat16;
    return params_dtype == "fp64" ? DType::kFloat64 : DType::kFloat32;
  }
  int64_t element_bytes() const { return size_bytes(element_dtype()); }
  // Whether the backend's ranks have this capability on this run's device. Throws kInvalidArgument for an unknown
  // backend.
  bool can(Capability capability) const;
  // Whether tensors are in GPU memory: either each rank has a GPU, or simulated ranks share one.
  bool on_gpu() const;
  // Whether experts are padded to their capacity: if they are to be, have one, and the dispatcher can.
  bool pads_experts() const;
};

// A checked configuration and the values derived from it. Immutable.
struct RunPlan {
  TrainConfig config;
  DeviceMesh mesh;
  bool sequence_parallel = false;
  int64_t micro_batch_size = 1;
  int64_t num_microbatches = 1;
  Schedule schedule = {};  // actions of every pipeline rank; with pp 1 one stage
  BatchRamp ramp = {};     // from --rampup-batch-size
  // schedules for the smaller batches of the ramp, keyed by number of microbatches
  std::map<int64_t, Schedule> ramp_schedules = {};
  std::vector<int64_t> stage_layers = {};  // layers of each stage of a chain
  // the stage of a chain that has the MTP modules, whose states the last stage turns into losses; -1: the last stage
  int mtp_stage = -1;
  int64_t bucket_bytes = 0;
  int zero_stage = 0;  // the row of kZeroStages; states are sharded over dp (of experts: edp)
  HardwareProfile profile;
  std::shared_ptr<const PrecisionPolicy> precision = nullptr;  // null: every GEMM is in the dtype of the parameters

  int dp() const { return mesh.size(Axis::kDp); }
  int replicas() const { return mesh.size(mesh.replica_axis()); }  // number of replicas of each dense parameter
  // Number of groups of ranks that train on gradients of their own part of the batch: DiLoCo's replicas, else one.
  int gradient_groups() const { return config.diloco.enabled() ? config.parallel.replicas : 1; }
  const ZeroStage& zero() const { return zero_stage_row(zero_stage); }
  int gpus_per_node() const { return config.gpus_per_node > 0 ? config.gpus_per_node : profile.gpus_per_node; }
  // Whether kernels are timed like those of another training software.
  bool of_other_software() const { return profile.kernels != nullptr && config.software != Software{}.name; }
  int64_t tokens_per_step() const { return config.global_batch_size * config.model.seq_length; }
  // Sizes of one step; its batch is smaller than the whole one during --rampup-batch-size.
  int64_t sequences_of(int64_t step) const { return ramp.grows() ? ramp.size_of(step) : config.global_batch_size; }
  int64_t tokens_of(int64_t step) const { return sequences_of(step) * config.model.seq_length; }
  int64_t microbatches_of(int64_t step) const { return sequences_of(step) / (micro_batch_size * dp()); }
  const Schedule& schedule_of(int64_t step) const {
    const auto smaller = ramp_schedules.find(ramp.grows() ? microbatches_of(step) : 0);
    return smaller == ramp_schedules.end() ? schedule : smaller->second;
  }
};

// Where a run resumes: its next step, and the number of training samples consumed before it.
struct DataCursor {
  int64_t step = 0;
  int64_t samples = 0;
};
// False if this plan would have consumed a different number of samples before that step, because the run resumes with
// another --rampup-batch-size or --global-batch-size. Then its batches, its schedules and its end, where they count
// samples, are those of plan_from().
bool ramp_reaches(const RunPlan& plan, const DataCursor& cursor);
// The plan for a resumed run, whose batches continue to grow with the samples consumed, as in Megatron-LM. Throws
// kInvalidArgument for a batch size that is not a whole number of microbatches.
RunPlan plan_from(RunPlan plan, const DataCursor& cursor);

// The hardware profile that the configuration names, with the changes it requests. Throws kInvalidArgument, kBadFile.
HardwareProfile profile_of(const TrainConfig& config);

// Checks every constraint. Throws kInvalidArgument naming both numbers and the nearest legal values.
RunPlan resolve(const TrainConfig& config);

}  // namespace ranklab
