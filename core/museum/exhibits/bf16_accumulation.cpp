#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit bf16_accumulation = {
    .name = "bf16-accumulation",
    .bug = InjectedBug::kBf16Accumulation,
    .kind = BugKind::kWrongPrecision,
    .title = "microbatch gradients are added up in bf16",
    .what_happened =
        "A bf16 number has 8 significant bits: once a sum is 256 times an addend, adding changes nothing. "
        "DeepSpeed's first bf16 support added microbatches in the type of the gradients. The issue is concerned about "
        "pipelines, which accumulate over many microbatches, and asks for sums in fp32, as in the BF16_optimizer that "
        "was being written at the time. The loss falls a little less. Here --main-grads-dtype fp32 asks for wide sums, "
        "and with the bug it is ignored.",
    .citation = "DeepSpeed issue 1800 (March 2022)",
    .url = "https://github.com/deepspeedai/DeepSpeed/issues/1800",
    .flags = "--dp 1 --bf16 --main-grads-dtype fp32 --num-microbatches 8",
    .look_for = "sums over microbatches have only 8 significant bits; each addend is right",
    .guilty_module = "head*",
    .guilty_axis = "none"};

}  // namespace ranklab::museum
