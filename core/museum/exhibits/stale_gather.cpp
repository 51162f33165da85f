#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit stale_gather = {
    .name = "stale-gather",
    .bug = InjectedBug::kStaleGather,
    .kind = BugKind::kStale,
    .title = "forward uses weights of the step before",
    .what_happened =
        "A distributed optimizer updates shards and gathers them while the next forward begins, bucket by "
        "bucket. In Megatron-LM a layer could be needed before the gather of its bucket was started, when parameters "
        "were stored in a different order than forward uses them; the handle was empty, nobody waited, and the "
        "forward took last step's weights. The report says how to see it: by the losses of 100 steps with and "
        "without the overlap. Training with weights that are a step late works, but less well. Here a rank sees "
        "the other ranks' shards a step late.",
    .citation = "Megatron-LM issue 950 (July 2024)",
    .url = "https://github.com/NVIDIA/Megatron-LM/issues/950",
    .flags = "--dp 2 --zero-stage 1",
    .look_for =
        "from the second update on gathered weights are those of the step before, except for a rank's own shard",
    .guilty_module = "embedding*",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
