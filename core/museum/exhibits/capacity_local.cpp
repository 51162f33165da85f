#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit capacity_local = {
    .name = "capacity-local",
    .bug = InjectedBug::kCapacityLocal,
    .kind = BugKind::kWrongGroup,
    .title = "an expert's capacity is computed from a rank's own tokens",
    .what_happened =
        "An expert takes only so many tokens of a batch. DeepSpeed computed the number from each rank's own "
        "tokens, and Tutel assumed that all ranks have equally many: ranks with different counts made buffers of "
        "different sizes, and the all-to-all hung in silence. Where counts are equal nothing hangs, but which "
        "tokens are dropped depends on how the batch is cut: a rank drops its own surplus where the batch as "
        "a whole has none. Here ranks exchange the sizes first, so the hang cannot occur; dropping by local counts "
        "does.",
    .citation = "DeepSpeed issue 6809 (December 2024); Tutel issue 173 (July 2022)",
    .url = "https://github.com/deepspeedai/DeepSpeed/issues/6809",
    .flags = "--tp 4 --dp 1 --num-experts 4 --moe-router-topk 2 --moe-expert-capacity-factor 1",
    .look_for = "the share of dropped tokens differs from one rank's, with the same router decisions",
    .guilty_module = "layers.*.mlp*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
