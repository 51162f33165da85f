#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit zero_padding = {
    .name = "zero-padding",
    .bug = InjectedBug::kZeroPadding,
    .kind = BugKind::kWrongPlace,
    .title = "gathered shards are read without their padding",
    .what_happened =
        "ZeRO 3 gathers parameters into one flat buffer in which each begins at an aligned offset. One path of "
        "DeepSpeed allocated the buffer by the aligned sizes, but walked through it by the unaligned ones: after a "
        "parameter whose size is not a multiple of the alignment, all others began a few elements early, in their "
        "predecessor's "
        "padding, which was not even initialized. Sizes of real models are mostly multiples, which hid it. Here "
        "parameters of a gathered bucket are located by the sums of their unpadded sizes.",
    .citation = "DeepSpeed pull request 8158 (July 2026)",
    .url = "https://github.com/deepspeedai/DeepSpeed/pull/8158",
    .flags = "--dp 2 --zero-stage 3 --hidden-size 40",
    .look_for = "weights after the first padded one are shifted while in use; the shards themselves are right",
    .guilty_module = "layers.0.*",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
