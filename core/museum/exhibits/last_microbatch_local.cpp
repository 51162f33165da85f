#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit last_microbatch_local = {
    .name = "last-microbatch-local",
    .bug = InjectedBug::kLastMicrobatchLocal,
    .kind = BugKind::kMissingSum,
    .title = "the last microbatch's gradient is not reduced",
    .what_happened =
        "With accumulation only the last backward of a step needs to communicate, and frameworks have a scope "
        "that switches it off for the others. FunASR applied it to the wrong ones: the first microbatch was "
        "reduced, and those up to the optimizer's step were added on each rank alone. A reproduction with two "
        "ranks has 4.0 and 7.0 where both should have 5.5. Every rank then trains a slightly different model, "
        "and the loss of rank 0 looks normal. Here the last microbatch's gradient is added after the reduction.",
    .citation = "FunASR pull request 3472 (August 2026)",
    .url = "https://github.com/modelscope/FunASR/pull/3472",
    .flags = "--dp 2 --num-microbatches 4",
    .look_for = "gradients after the reduction differ over dp",
    .guilty_module = "head*",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
