#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit dropout_mask_repeated = {
    .name = "dropout-mask-repeated",
    .bug = InjectedBug::kDropoutMaskRepeated,
    .kind = BugKind::kWrongRandom,
    .title = "ranks that hold different tokens drop the same elements",
    .what_happened =
        "With sequence parallelism each tp rank holds different positions, and its masks must differ. "
        "PaddleFleetX used one seed on all ranks of the group, right for copies, wrong for parts: every rank "
        "repeated one mask. Dropout then has a pattern with the period of a part, and the effective "
        "randomness is a fraction; the loss does not show it. Here a mask follows from a token's position in the "
        "whole sequence; with the bug it follows from its position among the rank's own.",
    .citation = "PaddleFleetX pull request 1005 (December 2022)",
    .url = "https://github.com/PaddlePaddle/PaddleFleetX/pull/1005",
    .flags = "--tp 2 --dp 1 --hidden-dropout 0.1",
    .look_for = "the mask of tp rank 1 is the mask of tp rank 0; on rank 0 all is right",
    .guilty_module = "embedding*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
