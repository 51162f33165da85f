#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit sampler_seed_per_rank = {
    .name = "sampler-seed-per-rank",
    .bug = InjectedBug::kSamplerSeedPerRank,
    .kind = BugKind::kWrongRandom,
    .title = "each data-parallel rank shuffles the samples in an order of its own",
    .what_happened =
        "Data-parallel ranks take disjoint parts of one shuffled order, so all of them must shuffle alike. In "
        "Hugging Face Accelerate the state of the sampler's generator was not synchronized between processes, "
        "which then cut their parts out of different orders: a sample may come twice in an epoch, and another "
        "never. Losses look ordinary, because each batch is a good random batch. Here the order follows from "
        "--seed; with the bug the data-parallel rank is added to it.",
    .citation = "Hugging Face Accelerate pull request 2694 (April 2024)",
    .url = "https://github.com/huggingface/accelerate/pull/2694",
    .flags = "--dp 4",
    .look_for = "tokens of ranks other than the first are not those of one rank; samples repeat before the epoch ends",
    .guilty_module = "batch",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
