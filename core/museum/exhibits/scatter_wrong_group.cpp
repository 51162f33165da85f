#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit scatter_wrong_group = {
    .name = "scatter-wrong-group",
    .bug = InjectedBug::kScatterWrongGroup,
    .kind = BugKind::kWrongGroup,
    .title = "embeddings are scattered over tp ranks as another group numbers them",
    .what_happened =
        "With sequence parallelism each tp rank keeps its part of the embedded sequence. Megatron's LLaVA "
        "model scattered the embeddings without passing its own group, so each rank kept the part that its "
        "number in the global tensor-parallel layout gave it, which differs where the model has its own group. "
        "GPT-NeoX had a reduce-scatter without its group as well: it harmed convergence as "
        "soon as the model-parallel group was not all ranks. Shapes are right and every rank has some part, "
        "so nothing stops. Here the parts go to the ranks in reverse order.",
    .citation = "Megatron-LM issue 7452, finding 7 (September 2026); GPT-NeoX pull request 1281 (September 2024)",
    .url = "https://github.com/NVIDIA/Megatron-LM/issues/7452",
    .flags = "--tp 4 --dp 1",
    .look_for = "the embedding's output on tp rank 0 is what tp rank 3 should have",
    .guilty_module = "embedding*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
