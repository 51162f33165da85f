#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit mean_of_means = {
    .name = "mean-of-means",
    .bug = InjectedBug::kMeanOfMeans,
    .kind = BugKind::kWrongScale,
    .title = "losses are averaged per microbatch, then over microbatches",
    .what_happened =
        "Sequences have different numbers of tokens that count. Trainers divided each microbatch's loss by "
        "its own tokens, then averaged over microbatches and ranks: a token in a short microbatch weighed "
        "more. A user asked Hugging Face for sums in 2023; in October 2024 many trainers were found to have it, and "
        "torchtune commemorated the day on which the community discovered that x1/n1 + x2/n2 is "
        "not (x1 + x2)/(n1 + n2). Loss curves with and without accumulation had never agreed. Here losses are "
        "divided by the tokens of the whole batch.",
    .citation = "torchtune pull request 1875 (October 2024); transformers issue 24725 (July 2023)",
    .url = "https://github.com/meta-pytorch/torchtune/pull/1875",
    .flags = "--dp 4 --num-microbatches 2 --eod-mask-loss --eod-token 32",
    .look_for =
        "the forward is right to the bit, the gradient of the loss itself is off by a different factor on each rank",
    .guilty_module = "head*",
    .guilty_axis = "none"};

}  // namespace ranklab::museum
