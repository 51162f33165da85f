#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit output_norm_partial = {
    .name = "output-norm-partial",
    .bug = InjectedBug::kOutputNormPartial,
    .kind = BugKind::kMissingSum,
    .title = "a norm that all heads share keeps a partial gradient",
    .what_happened =
        "Megatron Core's GatedDeltaNet normalizes its output with one weight that all heads share. Tensor parallelism "
        "gives each rank some of the heads, so each rank's gradient of that weight is a part of a sum, with or "
        "without sequence parallelism; the sum was only done with it. A checker of distributed types found it among "
        "other silent bugs: on two ranks all other gradients agreed with one rank's to 7.5e-9, and after 20 Adam "
        "steps the two copies were 0.0039 apart. GatedDeltaNet is not in this project: the norms of queries and keys "
        "share one weight over the heads in the same way, and lose their sum here.",
    .citation = "Megatron-LM issue 7452, finding 11 (September 2026)",
    .url = "https://github.com/NVIDIA/Megatron-LM/issues/7452",
    .flags = "--tp 2 --no-sequence-parallel --qk-layernorm",
    .look_for = "copies of the norms of queries and keys differ over tp from the first step on",
    .guilty_module = "layers.*.attention.?_norm*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
