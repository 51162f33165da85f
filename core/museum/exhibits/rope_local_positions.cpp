#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit rope_local_positions = {
    .name = "rope-local-positions",
    .bug = InjectedBug::kRopeLocalPositions,
    .kind = BugKind::kWrongPlace,
    .title = "rotary angles count from each cp rank's own first token",
    .what_happened =
        "A context-parallel rank has a part of each sequence and must rotate queries and keys by positions in "
        "the whole. In Megatron-LM's multimodal rotary embedding the call that takes the rank's part did not "
        "get the context-parallel group, and cut along the wrong dimension. Attention depends on differences "
        "of positions only, so within a part everything is right, and only distances between parts are wrong: the "
        "model trains, and is worse at long range. Here each rank uses the table's first rows.",
    .citation = "Megatron-LM pull request 1612 (June 2025)",
    .url = "https://github.com/NVIDIA/Megatron-LM/pull/1612",
    .flags = "--cp 2 --dp 1 --cp-comm-type p2p",
    .look_for =
        "queries and keys are right on no rank whose part does not begin the sequence; attention's output is "
        "the first wrong tensor",
    .guilty_module = "layers.0.attention*",
    .guilty_axis = "cp"};

}  // namespace ranklab::museum
