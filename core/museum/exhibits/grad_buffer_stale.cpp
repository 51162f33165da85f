#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit grad_buffer_stale = {
    .name = "grad-buffer-stale",
    .bug = InjectedBug::kGradBufferStale,
    .kind = BugKind::kStale,
    .title = "gradients are added onto what the buffer held before",
    .what_happened =
        "Megatron-LM's layer-wise distributed optimizer received gathered parameters in the memory of the "
        "gradient bucket, and did not clear it afterwards. Gradients are accumulated in place, so each began "
        "with the parameters' values already in it. It had come with an earlier change; the fix zeroes the "
        "buffer on both paths and was checked by loss curves with and without the overlap. Here the first "
        "gradient of a step is copied in, not added; with the bug the parameter's values are added to it.",
    .citation = "Megatron-LM pull request 4609 (May 2026)",
    .url = "https://github.com/NVIDIA/Megatron-LM/pull/4609",
    .flags = "--dp 2 --num-microbatches 2",
    .look_for = "each gradient is too large by dp times its own weight",
    .guilty_module = "head*",
    .guilty_axis = "none"};

}  // namespace ranklab::museum
