#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit init_per_shard = {
    .name = "init-per-shard",
    .bug = InjectedBug::kInitPerShard,
    .kind = BugKind::kWrongRandom,
    .title = "every tp rank draws the same numbers for its part of a weight",
    .what_happened =
        "A weight that tensor parallelism cuts is drawn in parts, one on each rank, and the parts must not "
        "repeat. In PaddleNLP's LoRA layers the random generator of the parallel region was not used, so that all "
        "ranks began with identical shards of a matrix; ms-swift had the same bug in tensors that it added to "
        "Megatron and fixed it by seeds per tensor-parallel rank. Nothing fails: the shapes are right and the "
        "loss falls, but the matrix begins with a fraction of its rank. Here a weight's numbers follow from "
        "its name and the element's index in the whole weight; with the bug each rank counts from zero.",
    .citation = "PaddleNLP pull request 9427 (November 2024); ms-swift pull request 7944 (January 2026)",
    .url = "https://github.com/PaddlePaddle/PaddleNLP/pull/9427",
    .flags = "--tp 2 --dp 1",
    .look_for = "shards of embedding.weight on the two ranks are equal; the first loss already differs",
    .guilty_module = "embedding*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
