#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit kv_heads_unreduced = {
    .name = "kv-heads-unreduced",
    .bug = InjectedBug::kKvHeadsUnreduced,
    .kind = BugKind::kMissingSum,
    .title = "gradients of a shared key/value head are not summed over tp",
    .what_happened =
        "With fewer key/value heads than tp ranks several ranks use copies of one head, each with its own "
        "queries, so the gradient of the head is a sum over them. BigCode's Megatron-LM with multi-query "
        "attention did the sum in the optimizer by hand; a review found that biases were missing from it, "
        "that the distributed optimizer left it out altogether, and that with interleaved stages it covered "
        "only the first. Here the sum is part of backward, where the bug takes a rank's own part.",
    .citation = "bigcode-project/Megatron-LM issue 11 (December 2022)",
    .url = "https://github.com/bigcode-project/Megatron-LM/issues/11",
    .flags = "--tp 4 --dp 1 --num-query-groups 1",
    .look_for = "the key and value rows of the projection's gradient are too small, the query rows right",
    .guilty_module = "layers.*.attention*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
