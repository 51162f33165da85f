#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit clip_first_tp_rank_only = {
    .name = "clip-first-tp-rank-only",
    .bug = InjectedBug::kClipFirstTpRankOnly,
    .kind = BugKind::kNotSynchronized,
    .title = "only the first tp rank clips its gradients",
    .what_happened =
        "BLOOM, 176 billion parameters on 384 GPUs, had trained for two weeks when it was found that its bf16 "
        "optimizer clipped gradients on the first tp rank alone. Norm weights, copies on four ranks, were no "
        "longer equal; training continued normally, but the ranks' parts would have to become one model at the end. "
        "A test reproduced it, the fix took a day, and the copies were averaged in every forward until new "
        "code could repair weights and optimizer states in a checkpoint. After the repair some layers diverged again, "
        "so there was another cause besides, and all checkpoints of the earlier 104B trial turned out "
        "to have it. Here the clipping factor is 1 on tp ranks above 0.",
    .citation = "BigScience BLOOM chronicles, 2022-03-24; DeepSpeed pull request 1801",
    .url = "https://github.com/bigscience-workshop/bigscience/blob/master/train/tr11-176B-ml/chronicles.md",
    .flags = "--tp 2 --dp 1 --clip-grad 0.2",
    .look_for =
        "updates on tp rank 1 use unclipped gradients: norms differ over tp after the first step that is "
        "clipped",
    .guilty_module = "*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
