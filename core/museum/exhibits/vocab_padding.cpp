#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit vocab_padding = {
    .name = "vocab-padding",
    .bug = InjectedBug::kVocabPadding,
    .kind = BugKind::kWrongScale,
    .title = "the loss counts rows that only pad the vocabulary",
    .what_happened =
        "A vocabulary that does not divide by the tp ranks is padded. In BioNeMo the loss at tp 2 lay a "
        "nearly constant bit above the loss at tp 1 while gradient norms agreed; padded columns in the "
        "softmax's sum were suspected, and the gap closed slowly, as if the model learned to give them no "
        "probability. Megatron-LM users report a loss far off when a vocabulary does not divide. Here the "
        "loss looks at a rank's real columns only; with the bug at all of them.",
    .citation = "BioNeMo pull request 631 (January 2025); compare Megatron-LM issue 1754 (August 2025)",
    .url = "https://github.com/NVIDIA-BioNeMo/bionemo-recipes/pull/631",
    .flags = "--tp 4 --dp 1 --vocab-size 257",
    .look_for = "the first loss is log(260 / 257) too high, and padded rows of the head get gradients",
    .guilty_module = "head*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
