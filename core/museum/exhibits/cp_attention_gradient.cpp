#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit cp_attention_gradient = {
    .name = "cp-attention-gradient",
    .bug = InjectedBug::kCpAttentionGradient,
    .kind = BugKind::kMissingSum,
    .title = "attention's gradient misses a block of the ring",
    .what_happened =
        "Context-parallel attention passes keys and values around a ring, and their gradients with them. "
        "Comparing a run with context parallelism with one on a single GPU, users of Megatron-LM found all gradients "
        "right to half an epsilon down to the attention of the last layer, and there queries, keys and values "
        "off by up to 1.14 times their size; the error then polluted all layers below. Nothing had failed. The "
        "report does not name the line, in Transformer Engine's AttnFuncWithCPAndKVP2P. Here the block of the "
        "last hop is left out of backward, which makes all three gradients wrong in the same way.",
    .citation = "Megatron-LM issue 1464, Transformer Engine issue 1557 (March 2025)",
    .url = "https://github.com/NVIDIA/Megatron-LM/issues/1464",
    .flags = "--cp 4 --dp 1 --cp-comm-type p2p",
    .look_for = "in backward the gradient that enters the last layer's attention is right, and what leaves it is not",
    .guilty_module = "layers.*.attention*",
    .guilty_axis = "cp"};

}  // namespace ranklab::museum
