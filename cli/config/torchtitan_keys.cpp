// Names and defaults: torchtitan/config/job_config.py of github.com/pytorch/torchtitan, its versions 0.1 and 0.2.
#include "cli/config/torchtitan_keys.h"

#include <algorithm>

namespace ranklab {
namespace {

using enum TorchtitanFate;

constexpr TorchtitanKey kTitanKeys[] = {
    {"model.name", kRead},
    {"model.flavor", kRead},
    {"model.converters", kRead},
    {"model.hf_assets_path", kNoEffect},
    {"model.tokenizer_path", kNoEffect},
    {"model.tokenizer_type", kNoEffect},
    {"model.norm_type", kNoEffect},
    {"model.print_after_conversion", kNoEffect},
    {"optimizer.name", kRead},
    {"optimizer.lr", kTo, "optim.lr"},
    {"optimizer.beta1", kTo, "optim.adam_beta1"},
    {"optimizer.beta2", kTo, "optim.adam_beta2"},
    {"optimizer.eps", kTo, "optim.adam_eps"},
    {"optimizer.weight_decay", kTo, "optim.weight_decay"},
    {"optimizer.implementation", kNoEffect},
    {"optimizer.fused", kNoEffect},
    {"optimizer.early_step_in_backward", kLeftOut, "weights change when all gradients are there"},
    {"lr_scheduler.warmup_steps", kTo, "optim.lr_warmup_iters"},
    {"lr_scheduler.decay_ratio", kRead},
    {"lr_scheduler.decay_type", kRead},
    {"lr_scheduler.min_lr_factor", kRead},
    {"lr_scheduler.lr_min", kRead},
    {"training.local_batch_size", kRead},
    {"training.batch_size", kRead},
    {"training.global_batch_size", kRead},
    {"training.seq_len", kTo, "model.seq_length"},
    {"training.max_norm", kTo, "optim.clip_grad"},
    {"training.steps", kTo, "train.train_iters"},
    {"training.warmup_steps", kTo, "optim.lr_warmup_iters"},
    {"training.seed", kTo, "train.seed"},
    {"training.deterministic", kTo, "parallel.deterministic"},
    {"training.dtype", kRead},
    {"training.mixed_precision_param", kRead},
    {"training.mixed_precision_reduce", kRead},
    {"training.enable_cpu_offload", kTo, "memory.optimizer_cpu_offload"},
    {"training.dataset", kNoEffect},
    {"training.dataset_path", kNoEffect},
    {"training.dataset_type", kNoEffect},
    {"training.gc_freq", kNoEffect},
    {"training.gc_debug", kNoEffect},
    {"training.compile", kNoEffect},
    {"parallelism.data_parallel_replicate_degree", kRead},
    {"parallelism.data_parallel_shard_degree", kRead},
    {"parallelism.fsdp_reshard_after_forward", kRead},
    {"parallelism.tensor_parallel_degree", kRead},
    {"parallelism.pipeline_parallel_degree", kRead},
    {"parallelism.pipeline_parallel_schedule", kRead},
    {"parallelism.pipeline_parallel_microbatch_size", kRead},
    {"parallelism.pipeline_parallel_layers_per_stage", kRead},
    {"parallelism.pipeline_parallel_first_stage_less_layers", kRead},
    {"parallelism.pipeline_parallel_last_stage_less_layers", kRead},
    {"parallelism.pipeline_parallel_schedule_csv", kLeftOut, "schedules are chosen by name"},
    {"parallelism.pipeline_parallel_split_points", kLeftOut, "--pipeline-layout 2,3,3,2 divides layers"},
    {"parallelism.module_fqns_per_model_part", kLeftOut, "--pipeline-layout 2,3,3,2 divides layers"},
    {"parallelism.context_parallel_degree", kRead},
    {"parallelism.context_parallel_rotate_method", kRead},
    {"parallelism.expert_parallel_degree", kTo, "parallel.ep"},
    {"parallelism.expert_tensor_parallel_degree", kTo, "parallel.etp"},
    {"parallelism.enable_async_tensor_parallel", kLeftOut, "tensor-parallel collectives wait for the products"},
    {"parallelism.disable_loss_parallel", kLeftOut, "the loss is computed in parts of the vocabulary"},
    {"parallelism.enable_compiled_autograd", kNoEffect},
    {"activation_checkpoint.mode", kRead},
    {"activation_checkpoint.selective_ac_option", kRead},
    {"activation_checkpoint.*", kNoEffect},
    {"quantize.linear.float8.recipe_name", kRead},
    {"float8.recipe_name", kRead},
    {"quantize.*", kNoEffect},
    {"float8.*", kNoEffect},
    {"mx.*", kNoEffect},
    {"metrics.log_freq", kTo, "log.interval"},
    {"metrics.enable_tensorboard", kRead},
    {"metrics.save_tb_folder", kRead},
    {"metrics.*", kNoEffect},
    {"checkpoint.enable", kRead},
    {"checkpoint.enable_checkpoint", kRead},
    {"checkpoint.folder", kRead},
    {"checkpoint.interval", kRead},
    {"checkpoint.keep_latest_k", kRead},
    {"checkpoint.*", kNoEffect},
    {"validation.enable", kRead},
    {"validation.enabled", kRead},
    {"validation.freq", kRead},
    {"validation.steps", kRead},
    {"validation.*", kNoEffect},
    {"debug.seed", kTo, "train.seed"},
    {"debug.deterministic", kTo, "parallel.deterministic"},
    {"debug.moe_force_load_balance", kTo, "moe.force_balance"},
    {"debug.*", kNoEffect},
    {"fault_tolerance.enable", kLeftOut, "a rank that fails ends the run; launch --max-restarts begins it again"},
    {"fault_tolerance.*", kNoEffect},
    {"job.*", kNoEffect},
    {"profiling.*", kNoEffect},
    {"compile.*", kNoEffect},
    {"comm.*", kNoEffect},
    {"memory_estimation.*", kNoEffect},
    {"experimental.*", kNoEffect},
};

}  // namespace

std::span<const TorchtitanKey> torchtitan_keys() { return kTitanKeys; }

const TorchtitanKey* find_torchtitan_key(const std::string& name) {
  const auto exact = std::ranges::find(kTitanKeys, name, &TorchtitanKey::name);
  if (exact != std::end(kTitanKeys)) return exact;
  const auto section = [&](const TorchtitanKey& key) {
    return key.name.ends_with(".*") && name.starts_with(key.name.substr(0, key.name.size() - 1));
  };
  const auto found = std::ranges::find_if(kTitanKeys, section);
  return found == std::end(kTitanKeys) ? nullptr : found;
}

}  // namespace ranklab
