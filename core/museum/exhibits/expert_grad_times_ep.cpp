#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit expert_grad_times_ep = {
    .name = "expert-grad-times-ep",
    .bug = InjectedBug::kExpertGradTimesEp,
    .kind = BugKind::kWrongScale,
    .title = "gradients of experts are too large by the ep size",
    .what_happened =
        "An expert under expert parallelism sees the tokens of all its ep peers, but is replicated only on "
        "the ranks that share it; whoever divides its gradient by that smaller number gets ep times too much. "
        "DeepSpeed's ZeRO did so: an issue of June 2024 was closed with a partial fix and filed again in September; "
        "the division by all data-parallel ranks was then a fix of one line. The same factor of two "
        "was reported of PyTorch and torchtitan with loss curves that coincide, since AdamW divides it away "
        "again. Gradients show it at once, and so does SGD. Gradients here are sums over tokens and are "
        "divided once, so the factor is multiplied in on purpose.",
    .citation = "DeepSpeed issues 5618 and 6545, pull request 6546 (2024); PyTorch issue 160285 (August 2025)",
    .url = "https://github.com/deepspeedai/DeepSpeed/issues/5618",
    .flags = "--dp 4 --ep 4 --num-experts 4",
    .look_for = "gradients of experts are four times one rank's, all others right",
    .guilty_module = "layers.*.mlp.experts*",
    .guilty_axis = "ep"};

}  // namespace ranklab::museum
