#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit bf16_no_master = {
    .name = "bf16-no-master",
    .bug = InjectedBug::kBf16NoMaster,
    .kind = BugKind::kWrongPrecision,
    .title = "bf16 weights are updated without fp32 masters",
    .what_happened =
        "Near 1 the neighbours of a bf16 number are 1/128 above and 1/256 below, and an update smaller than "
        "half of that rounds to nothing. Apex's FusedAdam accepted master_weights=True but created none for bf16. In "
        "vLLM's speculators, trained wholly in bf16, all norm weights of published models were found to be exactly "
        "1.0, their initial value; keeping the weights in fp32 improved results by some 10 to "
        "15 %. The loss falls, because small weights do move. Here AdamW gets no masters.",
    .citation = "apex issue 1728 (September 2023); vLLM speculators pull request 765 (July 2026)",
    .url = "https://github.com/NVIDIA/apex/issues/1728",
    .flags = "--dp 2 --bf16 --lr 0.0005",
    .look_for = "norm weights are still exactly 1 after training",
    .guilty_module = "*",
    .guilty_axis = "none"};

}  // namespace ranklab::museum
