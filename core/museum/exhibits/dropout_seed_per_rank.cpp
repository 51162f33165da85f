#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit dropout_seed_per_rank = {
    .name = "dropout-seed-per-rank",
    .bug = InjectedBug::kDropoutSeedPerRank,
    .kind = BugKind::kWrongRandom,
    .title = "ranks that share activations drop different elements",
    .what_happened =
        "Without sequence parallelism all tp ranks hold the same activations, and dropout must drop the same "
        "ones on each. Tenstorrent's training library seeded dropout with seed + device, to have different "
        "masks on data-parallel devices; with tensor parallelism the offset reaches devices that hold copies, "
        "too. A later issue states the rule: masks match within each tp group and differ between "
        "data-parallel groups. With the bug the copies of the residual stream differ from the first dropout "
        "on, and norms, which see the copies, drift apart. Here the tp rank is added to the seed of dropout.",
    .citation = "tt-metal pull request 16823 (January 2025), issue 55947 (September 2026)",
    .url = "https://github.com/tenstorrent/tt-metal/issues/55947",
    .flags = "--tp 2 --dp 1 --no-sequence-parallel --hidden-dropout 0.1",
    .look_for = "activations that are copies differ over tp after the embedding's dropout",
    .guilty_module = "embedding*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
