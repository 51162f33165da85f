#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit bias_local_load = {
    .name = "bias-local-load",
    .bug = InjectedBug::kBiasLocalLoad,
    .kind = BugKind::kNotSynchronized,
    .title = "the bias of experts follows a rank's own load",
    .what_happened =
        "Balancing without a loss moves each expert's bias up or down by the sign of its load against the "
        "mean, so counts must be exact and cover all ranks. Megatron-LM kept them in a buffer that bf16 "
        "training made bf16: of 64 ranks' counts with the exact sum 40,840 one reduction made 41,216 and "
        "another 40,704, on either side of the mean of 40,960, and the bias went the wrong way. Counts here are exact, "
        "so rounding cannot reproduce it: with the bug the sum over ranks is left out, which flips signs in the same "
        "way and makes the copies of the bias differ.",
    .citation = "Megatron-LM pull request 7081 (September 2026)",
    .url = "https://github.com/NVIDIA/Megatron-LM/pull/7081",
    .flags =
        "--dp 4 --ep 2 --num-experts 4 --moe-router-topk 2 --moe-router-score-function sigmoid "
        "--moe-router-enable-expert-bias --moe-router-bias-update-rate 0.01",
    .look_for = "the bias differs over ranks after the first step, and router decisions after the second",
    .guilty_module = "layers.*.mlp*",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
