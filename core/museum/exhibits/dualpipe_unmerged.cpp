#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit dualpipe_unmerged = {
    .name = "dualpipe-unmerged",
    .bug = InjectedBug::kDualPipeUnmerged,
    .kind = BugKind::kMissingSum,
    .title = "DualPipe's two directions keep their gradients to themselves",
    .what_happened =
        "DualPipe runs microbatches through the pipeline from both ends, with two copies of the model: each rank has "
        "one stage of each direction. The example code creates two sets of weights and does not mention an optimizer. "
        "A user worked out in the project's issues that updating one would leave the other "
        "behind, and that gradients of rank 0 and rank 7 must be reduced together; the answer was to treat "
        "such ranks as data-parallel. Without it each direction trains a model on half of the microbatches. "
        "Here the sum over the two holders is left out for all but the embedding.",
    .citation = "DeepSeek DualPipe issue 22 (April 2025)",
    .url = "https://github.com/deepseek-ai/DualPipe/issues/22",
    .flags = "--pp 2 --dp 1 --num-microbatches 4 --pipeline-schedule dualpipe",
    .look_for = "the two copies of every layer have different gradients, each of half of the batch",
    .guilty_module = "head*",
    .guilty_axis = "pp"};

}  // namespace ranklab::museum
