#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit mtp_loss_over_cp = {
    .name = "mtp-loss-over-cp",
    .bug = InjectedBug::kMtpLossOverCp,
    .kind = BugKind::kWrongScale,
    .title = "the multi-token prediction loss shrinks with cp",
    .what_happened =
        "Multi-token prediction adds a loss through a hook that scales its gradient. Under context "
        "parallelism Megatron-LM's loss function multiplies the number of microbatches by the cp size, and the scale "
        "of the additional loss was divided by it, too. The same had been fixed for the loss of "
        "experts before, and this copy was forgotten. The model trains; its prediction heads learn at a fraction of "
        "the requested weight. Here the weight is divided by the cp size.",
    .citation = "Megatron-LM issue 3943, pull request 3959 (March 2026)",
    .url = "https://github.com/NVIDIA/Megatron-LM/issues/3943",
    .flags = "--cp 2 --dp 1 --mtp-num-layers 1",
    .look_for = "gradients of mtp.* are half of one rank's; the loss of the forward is right",
    .guilty_module = "mtp*",
    .guilty_axis = "cp"};

}  // namespace ranklab::museum
