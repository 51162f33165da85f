#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit norm_unreduced = {
    .name = "norm-unreduced",
    .bug = InjectedBug::kNormUnreduced,
    .kind = BugKind::kMissingSum,
    .title = "the last norm's gradient is not summed over tp",
    .what_happened =
        "With tensor and sequence parallelism each rank normalizes its own part of the sequence, so the gradient of a "
        "norm's weight is a part of a sum over the tp ranks. Megatron-LM marked the norms of its layers for that sum, "
        "but the final norm slipped through. A user printed the main gradients of final_layernorm.weight before the "
        "optimizer's step and found four different tensors on four ranks. No error was raised and the loss fell as "
        "usual, while each rank trained its own final norm. Here the final norm is not marked for the sum, at "
        "the place where norms are made.",
    .citation = "Megatron-LM issue 1446 (March 2025)",
    .url = "https://github.com/NVIDIA/Megatron-LM/issues/1446",
    .flags = "--tp 4",
    .look_for =
        "copies of final_norm.weight differ over the tp ranks after the first step; all else is right until then",
    .guilty_module = "final_norm*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
