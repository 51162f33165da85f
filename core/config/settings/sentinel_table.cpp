// The one table of sentinels. A row without bounds is only recorded, unless a run gives it bounds.
#include <array>

#include "core/config/settings/sentinel_rules.h"

namespace ranklab {
namespace {

constexpr SentinelMode kOff = SentinelMode::kOff, kMinimal = SentinelMode::kMinimal,
                       kStandard = SentinelMode::kStandard, kDebug = SentinelMode::kDebug;
constexpr SentinelAction kWarn = SentinelAction::kWarn, kCheckpoint = SentinelAction::kCheckpoint;

constexpr SentinelBounds above(double high) { return {.high = high}; }
constexpr SentinelBounds below(double low) { return {.low = low}; }
constexpr SentinelBounds between(double low, double high) { return {.low = low, .high = high}; }

constexpr auto kRows = std::to_array<SentinelRow>({
    // Losses and tokens.
    {"loss_raw", "Loss/train_raw", "mean loss of the tokens that count in the global batch"},
    {"loss", "Loss/train", "running mean of the loss: 0.9 of the one before, 0.1 of this step's"},
    {"perplexity", "PPL/train", "exp(running mean of the loss)"},
    {"loss_spike", "Health/loss_spike_ratio", "loss / running mean of the steps before", kMinimal, above(3), above(10)},
    {"val_loss", "Loss/val", "loss of the latest validation, with the step after it"},
    {"val_perplexity", "PPL/val", "exp(loss of the latest validation)"},
    {"val_gap", "Eval/train_val_gap", "loss of the latest validation - running mean of the loss"},
    {"lr", "LR", "learning rate that the update used"},
    {"lr_schedule", "Optimizer/lr_off_schedule", "|learning rate that the update used / that of the schedule - 1|",
     kMinimal, above(1e-6)},
    {"tokens_seen", "Tokens/seen", "tokens so far, of steps with sentinels"},
    {"effective_tokens_seen", "Tokens/effective_seen", "tokens so far whose target counts"},
    {"tokens_per_update", "Data/tokens_per_update", "tokens of the global batch"},
    {"effective_tokens_per_update", "Data/effective_tokens_per_update", "tokens of the global batch that count"},
    {"ignored_tokens", "Data/ignore_frac", "share of the global batch's targets that do not count", kMinimal,
     above(0.2), above(0.3), kWarn, 5},
    // Gradients as a whole.
    {"grad_norm", "Gradients/norm", "norm of all gradients before clipping", kMinimal, between(1e-2, 1e2), above(1e3)},
    {"clip_coef", "Gradients/clip_coef", "min(1, --clip-grad / (norm + 1e-6))", kMinimal, below(0.5), below(0.1), kWarn,
     5},
    {"clipped", "Gradients/clipped", "1 if this step's gradients were clipped, else 0"},
    {"clip_rate", "Gradients/clip_rate", "share of clipped steps among the last 20"},
    // Experts.
    {"dead_experts", "Experts/dead_frac", "share of experts without a token, in the worst layer", kMinimal,
     above(0.25)},
    {"collapsed_experts", "Experts/load_entropy_norm",
     "entropy of the experts' shares of tokens / log(experts), in the worst layer", kMinimal, below(0.5), below(0.1)},
    {"dropped_tokens", "Experts/dropped_frac", "share of assignments to experts that capacity dropped", kMinimal,
     above(0.1), above(0.5)},
    // Time.
    {"step_seconds", "Time/step_seconds", "wall time from the end of the step before to the end of this one"},
    {"data_wait_seconds", "Time/data_wait_seconds", "wall time in the data loader, of the rank that waited longest"},
    {"data_wait", "Time/data_wait_frac", "data wait / step time", kMinimal, above(0.3), above(0.5), kWarn, 5},
    {"compute_seconds", "Time/compute_seconds_est", "step time - data wait"},
    {"compute_frac", "Time/compute_frac_est", "(step time - data wait) / step time"},
    {"steps_per_second", "Throughput/steps_per_second", "1 / step time"},
    {"tokens_per_second", "Throughput/tokens_per_second", "tokens / step time"},
    {"effective_tokens_per_second", "Throughput/effective_tokens_per_second", "tokens that count / step time"},
    {"samples_per_second", "Throughput/samples_per_second", "sequences / step time"},
    {"achieved_tflops", "Perf/achieved_tflops", "model FLOPs of the step / step time / 10^12, of all ranks"},
    {"mfu", "Perf/mfu", "model FLOPs / (virtual time x peak of the ranks)"},
    {"throughput_drop", "Health/step_time_ratio",
     "step time / median of the last 20: virtual time where there is a clock, else wall time; of a sequence, where "
     "batches "
     "grow",
     kMinimal, above(1.5)},
    {"straggler", "Health/straggler_ratio",
     "compute time of the slowest rank / median of its pipeline stage (virtual time), in the worst stage", kMinimal,
     above(1.3)},
    // Memory and checkpoints.
    {"allocated", "Memory/allocated_mb", "MiB of tensors after the step, of the fullest rank"},
    {"max_allocated", "Memory/max_allocated_mb", "MiB of tensors at their peak, of the fullest rank"},
    {"reserved", "Memory/reserved_frac", "peak of the fullest rank / memory of the device (of the profile)", kMinimal,
     above(0.9), above(0.95)},
    {"memory_growth", "Health/memory_growth",
     "least bytes after the last 5 steps / after the first 5, of the rank that grew most; of batches of one size, "
     "where they grow",
     kMinimal, above(1.2)},
    {"checkpoint_seconds", "Time/checkpoint_seconds", "time to write the latest checkpoint, with the step after it"},
    {"checkpoint_mb", "Checkpoint/size_mb", "MiB of the latest checkpoint"},
    // Weights and updates.
    {"weight_norm", "Parameters/norm", "norm of all weights before the update", kStandard},
    {"update_ratio", "Updates/ratio_global", "learning rate x clip coefficient x gradient norm / weight norm",
     kStandard, between(1e-7, 1e-1), above(3e-1)},
    {"update_ratio_p50", "Updates/ratio_p50", "median of that ratio over the matrices of the layers", kStandard,
     below(1e-7)},
    {"update_ratio_p95", "Updates/ratio_p95", "95th percentile of it", kStandard, above(1e-1)},
    {"update_ratio_max", "Updates/ratio_max", "largest of it", kStandard, {}, above(3e-1)},
    {"block_grad_norm", "Gradients/block_{}/norm", "norm of the gradients of a layer's matrices", kStandard},
    {"block_update_ratio", "Updates/block_{}/ratio", "the ratio of a layer's matrices together", kStandard},
    {"block_weight_norm", "Weights/block_{}/norm", "norm of a layer's matrices", kStandard},
    {"grad_depth_ratio", "Gradients/depth_ratio_first_last", "gradient norm of the first layer / of the last",
     kStandard, below(0.05), below(0.01), kWarn, 5},
    {"update_depth_ratio", "Updates/depth_ratio_first_last", "update ratio of the first layer / of the last", kStandard,
     below(0.05), below(0.01), kWarn, 5},
    {"weight_spread", "Weights/depth_max_over_min", "largest norm of a layer's matrices / smallest", kStandard,
     above(1000)},
    {"no_update", "Updates/changed_frac", "share of sampled weights that the update changed", kStandard, below(1e-3)},
    {"optimizer_state", "Optimizer/opt_state_finite",
     "1 if the moments of the sentinel layers (debug: of all) are finite, else 0", kStandard, below(1), below(1)},
    // Activations.
    {"norm_rms", "Activations/{}/rms", "root mean square of a norm's output", kStandard, between(0.5, 2),
     between(0.25, 4), kWarn, 5},
    {"activation_max", "Activations/{}/max_abs", "largest magnitude of a norm's output", kStandard, above(20),
     above(50), kWarn, 5},
    {"residual_rms", "Residual/{}/rms", "root mean square of the residual stream that a block's first norm reads",
     kStandard},
    {"residual_growth", "Residual/{}/rms_growth", "that, divided by what it was when last measured", kStandard,
     above(32)},
    {"residual_outliers", "Residual/{}/outlier_rate_k10",
     "share of its elements beyond 10 times its root mean square (rounded up, by an eighth at most)", kStandard,
     above(1e-3), above(1e-2), kWarn, 5},
    // The probe: one fixed sequence.
    {"probe_hash", "Eval/eval_artifact_hash", "52 bits of the hash of the probe's tokens: runs with the same compare",
     kStandard},
    {"probe_loss", "Probes/fixed_probe_loss", "mean loss of the probe's tokens", kStandard},
    {"probe_entropy", "Probes/logit_entropy", "entropy of the prediction after the probe's last token", kStandard},
    {"probe_topk", "Probes/topk_mass_k10", "probability of its 10 likeliest tokens", kStandard},
    {"probe_kl", "Probes/output_kl_to_prev", "KL divergence from that prediction to the one of the probe before",
     kStandard, above(4)},
    {"attention_logit", "Attention/{}/max_attn_logit", "largest score before softmax, of the probe's queries",
     kStandard, above(200), above(1000)},
    {"attention_entropy", "Attention/{}/attn_entropy", "mean entropy of a query's attention to keys, of the probe",
     kStandard},
    {"attention_collapse", "Attention/{}/attn_entropy_norm", "mean of entropy / log(keys that the query sees)",
     kStandard, below(0.1)},
    {"attention_sink", "Attention/{}/sink_share", "mean share of a query's attention that its head's sink takes",
     kStandard},
    // Across ranks.
    {"replica_drift", "Health/replica_drift", "ranks whose weights differ from those of the first replica", kStandard,
     above(0), above(0), kCheckpoint},
    {"data_repeated", "Data/repeated_frac",
     "share of sequences that the last 16 steps, or another dp rank, had as well", kStandard, above(0.1)},
    {"data_mismatch", "Data/peers_differ", "ranks that loaded other tokens than their model-parallel peers", kStandard,
     above(0), above(0)},
    // Parity within a run, with --watch.
    {"parity_copies", "Parity/copies_differ",
     "sampled tensors of which ranks that must have the same elements have other bits", kOff, above(0)},
    {"parity_layer", "Parity/layer_over_allowed",
     "distance of the sampled layer's first wrong (else farthest) tensor from what one rank computes of the same input "
     "and weights / what is allowed",
     kOff, above(1)},
    // Single parameters: those of the sentinel layers, in debug mode all.
    {"parameter_grad_norm", "gradients/{}/norm", "norm of a parameter's gradient", kStandard},
    {"parameter_ratio", "updates/{}/ratio", "learning rate x clip coefficient x gradient norm / weight norm",
     kStandard},
    {"parameter_norm", "weights/{}/norm", "norm of a parameter", kStandard},
    {"parameter_grad_mean", "gradients/{}/mean", "mean of a gradient's elements", kDebug},
    {"parameter_grad_std", "gradients/{}/std", "standard deviation of a gradient's elements", kDebug},
    {"parameter_update_norm", "updates/{}/update_norm", "norm of what the optimizer changed", kDebug},
    {"parameter_update_ratio", "updates/{}/true_ratio", "that / norm of the parameter", kDebug},
});

}  // namespace

std::span<const SentinelRow> sentinel_rows() { return kRows; }

}  // namespace ranklab
