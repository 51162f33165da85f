#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit experts_missing_from_norm = {
    .name = "experts-missing-from-norm",
    .bug = InjectedBug::kExpertsMissingFromNorm,
    .kind = BugKind::kMissingSum,
    .title = "the clip norm leaves out the experts of all but one tp rank",
    .what_happened =
        "A parameter that tp ranks hold as copies counts once in the gradient's norm, so all but the first "
        "rank leave copies out. Megatron-LM judged experts by that rule, too, although with expert parallelism over tp "
        "ranks each has its own experts: they were left out of the norm and clipped by a factor "
        "that was too large. A fork measured 11.51 instead of 12.28 in a training step of DeepSeek-V4, and a "
        "clipping factor 6.6 % off. Here experts are judged by the tp rank as well.",
    .citation = "Megatron-LM pull request 5916 (July 2026); radixark/Megatron-LM pull request 80 (August 2026)",
    .url = "https://github.com/NVIDIA/Megatron-LM/pull/5916",
    .flags = "--tp 2 --ep 2 --dp 1 --num-experts 4 --clip-grad 0.2",
    .look_for = "gradients are right, the norm is below one rank's",
    .guilty_module = "grad_norm",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
