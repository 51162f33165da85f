#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit tied_embedding_unsynced = {
    .name = "tied-embedding-unsynced",
    .bug = InjectedBug::kTiedEmbeddingUnsynced,
    .kind = BugKind::kMissingSum,
    .title = "the two copies of a tied embedding are not summed over pp",
    .what_happened =
        "A model that uses its embedding as output head has the weight on the first and on the last pipeline "
        "stage, and the two gradients must be added. Piper duplicated the weight and left out the sum, and Cornstarch "
        "lists the same sum as still missing: weights are wrong until then. The copies diverge at the first update: "
        "the first learns as an embedding only, the last as a head only. The loss falls, because two untied matrices "
        "are a valid model, too, but not the requested one and not one that a checkpoint can hold. Here the sum over "
        "stages leaves the embedding out.",
    .citation = "Piper issue 13 (July 2026); Cornstarch pull request 16 (July 2024)",
    .url = "https://github.com/uw-syfi/piper/issues/13",
    .flags = "--pp 2 --dp 1 --tie-embeddings",
    .look_for = "embedding.weight has one gradient on the first stage and another on the last",
    .guilty_module = "embedding*",
    .guilty_axis = "pp"};

}  // namespace ranklab::museum
