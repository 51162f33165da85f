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
    {"loss_raw", "Loss/train_raw", "mean loss over the tokens of the global batch that count in the loss"},
    {"loss", "Loss/train", "running mean of the loss: 0.9 of the previous mean + 0.1 of this step's loss"},
    {"perplexity", "PPL/train", "exp(running mean of the loss)"},
    {"loss_spike", "Health/loss_spike_ratio", "loss / running mean of the previous steps", kMinimal, above(3),
     above(10)},
    {"val_loss", "Loss/val", "loss of the latest validation, reported with the following step"},
    {"val_perplexity", "PPL/val", "exp(loss of the latest validation)"},
    {"val_gap", "Eval/train_val_gap", "loss of the latest validation - running mean of the loss"},
    {"lr", "LR", "learning rate of the update"},
    {"lr_schedule", "Optimizer/lr_off_schedule", "|learning rate of the update / that of the schedule - 1|", kMinimal,
     above(1e-6)},
    {"tokens_seen", "Tokens/seen", "tokens so far, in steps with sentinels"},
    {"effective_tokens_seen", "Tokens/effective_seen", "tokens so far whose target counts in the loss"},
    {"tokens_per_update", "Data/tokens_per_update", "tokens of the global batch"},
    {"effective_tokens_per_update", "Data/effective_tokens_per_update",
     "tokens of the global batch that count in the loss"},
    {"ignored_tokens", "Data/ignore_frac", "share of the global batch's targets that do not count in the loss",
     kMinimal, above(0.2), above(0.3), kWarn, 5},
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
    {"dropped_tokens", "Experts/dropped_frac", "share of expert assignments dropped by the capacity limit", kMinimal,
     above(0.1), above(0.5)},
    // Time.
    {"step_seconds", "Time/step_seconds", "wall time from the end of the previous step to the end of this one"},
    {"data_wait_seconds", "Time/data_wait_seconds", "wall time in the data loader, on the rank that waited longest"},
    {"data_wait", "Time/data_wait_frac", "data wait / step time", kMinimal, above(0.3), above(0.5), kWarn, 5},
    {"compute_seconds", "Time/compute_seconds_est", "step time - data wait"},
    {"compute_frac", "Time/compute_frac_est", "(step time - data wait) / step time"},
    {"steps_per_second", "Throughput/steps_per_second", "1 / step time"},
    {"tokens_per_second", "Throughput/tokens_per_second", "tokens / step time"},
    {"effective_tokens_per_second", "Throughput/effective_tokens_per_second",
     "tokens that count in the loss / step time"},
    {"samples_per_second", "Throughput/samples_per_second", "sequences / step time"},
    {"achieved_tflops", "Perf/achieved_tflops", "model FLOPs of the step / step time / 10^12, of all ranks"},
    {"mfu", "Perf/mfu", "model FLOPs / (virtual time x peak of the ranks)"},
    {"throughput_drop", "Health/step_time_ratio",
     "step time / median of the last 20 steps: virtual time if there is a virtual clock, else wall time; per sequence "
     "during batch size ramp-up",
     kMinimal, above(1.5)},
    {"straggler", "Health/straggler_ratio",
     "compute time of the slowest rank / median of its pipeline stage (virtual time), in the worst stage", kMinimal,
     above(1.3)},
    // Memory and checkpoints.
    {"allocated", "Memory/allocated_mb", "MiB of tensors after the step, on the fullest rank"},
    {"max_allocated", "Memory/max_allocated_mb", "peak MiB of tensors, on the fullest rank"},
    {"reserved", "Memory/reserved_frac", "peak of the fullest rank / memory of the device (of the profile)", kMinimal,
     above(0.9), above(0.95)},
    {"memory_growth", "Health/memory_growth",
     "least bytes after the last 5 steps / after the first 5, on the rank that grew most; among steps of one batch "
     "size",
     kMinimal, above(1.2)},
    {"checkpoint_seconds", "Time/checkpoint_seconds",
     "time to write the latest checkpoint, reported with the following step"},
    {"checkpoint_mb", "Checkpoint/size_mb", "MiB of the latest checkpoint"},
    // Weights and updates.
    {"weight_norm", "Parameters/norm", "norm of all weights before the update", kStandard},
    {"update_ratio", "Updates/ratio_global", "learning rate x clip coefficient x gradient norm / weight norm",
     kStandard, between(1e-7, 1e-1), above(3e-1)},
    {"update_ratio_p50", "Updates/ratio_p50", "median of the update ratio over the layers' matrices", kStandard,
     below(1e-7)},
    {"update_ratio_p95", "Updates/ratio_p95", "95th percentile of the update ratio over the layers' matrices",
     kStandard, above(1e-1)},
    {"update_ratio_max",
     "Updates/ratio_max",
     "largest update ratio over the layers' matrices",
     kStandard,
     {},
     above(3e-1)},
    {"block_grad_norm", "Gradients/block_{}/norm", "norm of the gradients of a layer's matrices", kStandard},
    {"block_update_ratio", "Updates/block_{}/ratio", "update ratio of all matrices of a layer together", kStandard},
    {"block_weight_norm", "Weights/block_{}/norm", "norm of a layer's matrices", kStandard},
    {"grad_depth_ratio", "Gradients/depth_ratio_first_last", "gradient norm of the first layer / of the last layer",
     kStandard, below(0.05), below(0.01), kWarn, 5},
    {"update_depth_ratio", "Updates/depth_ratio_first_last", "update ratio of the first layer / of the last layer",
     kStandard, below(0.05), below(0.01), kWarn, 5},
    {"weight_spread", "Weights/depth_max_over_min", "largest / smallest norm of a layer's matrices", kStandard,
     above(1000)},
    {"no_update", "Updates/changed_frac", "share of sampled weights that the update changed", kStandard, below(1e-3)},
    {"optimizer_state", "Optimizer/opt_state_finite",
     "1 if the optimizer moments of the sentinel layers (debug: of all layers) are finite, else 0", kStandard, below(1),
     below(1)},
    // Activations.
    {"norm_rms", "Activations/{}/rms", "root mean square of a norm's output", kStandard, between(0.5, 2),
     between(0.25, 4), kWarn, 5},
    {"activation_max", "Activations/{}/max_abs", "largest magnitude of a norm's output", kStandard, above(20),
     above(50), kWarn, 5},
    {"residual_rms", "Residual/{}/rms", "root mean square of the residual stream that a block's first norm reads",
     kStandard},
    {"residual_growth", "Residual/{}/rms_growth", "residual_rms / its value at the previous measurement", kStandard,
     above(32)},
    {"residual_outliers", "Residual/{}/outlier_rate_k10",
     "share of residual elements beyond 10 times the root mean square (rounded up, by at most an eighth)", kStandard,
     above(1e-3), above(1e-2), kWarn, 5},
    // The probe: one fixed sequence.
    {"probe_hash", "Eval/eval_artifact_hash",
     "52 bits of the hash of the probe's tokens; runs with equal hashes are comparable", kStandard},
    {"probe_loss", "Probes/fixed_probe_loss", "mean loss of the probe's tokens", kStandard},
    {"probe_entropy", "Probes/logit_entropy", "entropy of the prediction after the probe's last token", kStandard},
    {"probe_topk", "Probes/topk_mass_k10", "total probability of the 10 likeliest tokens of that prediction",
     kStandard},
    {"probe_kl", "Probes/output_kl_to_prev", "KL divergence of that prediction from the previous probe's", kStandard,
     above(4)},
    {"attention_logit", "Attention/{}/max_attn_logit", "largest attention logit of the probe", kStandard, above(200),
     above(1000)},
    {"attention_entropy", "Attention/{}/attn_entropy", "mean attention entropy over the probe's queries", kStandard},
    {"attention_collapse", "Attention/{}/attn_entropy_norm",
     "mean of attention entropy / log(number of visible keys) over the probe's queries", kStandard, below(0.1)},
    {"attention_sink", "Attention/{}/sink_share", "mean attention to the head's sink over the probe's queries",
     kStandard},
    // Across ranks.
    {"replica_drift", "Health/replica_drift", "number of ranks whose weights differ from the first replica's",
     kStandard, above(0), above(0), kCheckpoint},
    {"data_repeated", "Data/repeated_frac",
     "share of sequences already seen in the last 16 steps or on another dp rank", kStandard, above(0.1)},
    {"data_mismatch", "Data/peers_differ", "number of ranks that loaded other tokens than their model-parallel peers",
     kStandard, above(0), above(0)},
    // Parity within a run, with --watch.
    {"parity_copies", "Parity/copies_differ",
     "number of sampled tensors whose copies on several ranks have different bits", kOff, above(0)},
    {"parity_layer", "Parity/layer_over_allowed",
     "distance of the sampled layer's first wrong (else farthest) tensor from a single-rank computation on the same "
     "input and weights / tolerance",
     kOff, above(1)},
    // Single parameters: those of the sentinel layers, in debug mode all.
    {"parameter_grad_norm", "gradients/{}/norm", "norm of a parameter's gradient", kStandard},
    {"parameter_ratio", "updates/{}/ratio", "learning rate x clip coefficient x gradient norm / weight norm",
     kStandard},
    {"parameter_norm", "weights/{}/norm", "norm of a parameter", kStandard},
    {"parameter_grad_mean", "gradients/{}/mean", "mean of a gradient's elements", kDebug},
    {"parameter_grad_std", "gradients/{}/std", "standard deviation of a gradient's elements", kDebug},
    {"parameter_update_norm", "updates/{}/update_norm", "norm of the parameter's change in the update", kDebug},
    {"parameter_update_ratio", "updates/{}/true_ratio", "parameter_update_norm / norm of the parameter", kDebug},
});

}  // namespace

std::span<const SentinelRow> sentinel_rows() { return kRows; }

}  // namespace ranklab
