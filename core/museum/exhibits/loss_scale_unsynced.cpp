#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit loss_scale_unsynced = {
    .name = "loss-scale-unsynced",
    .bug = InjectedBug::kLossScaleUnsynced,
    .kind = BugKind::kNotSynchronized,
    .title = "each rank has a loss scale of its own",
    .what_happened =
        "fp16 training multiplies the loss by a scale and halves it when a gradient overflows. In "
        "Megatron-Bridge's multi-module training each module's optimizer updated its own scaler before the "
        "ranks agreed on the overflow. All skipped the step together, but only the module that overflowed had "
        "halved its scale: a test reads 4 and 8. From then on the loss is scaled by one rank's number and "
        "gradients are unscaled by another's, with no sign of it but gradients that are off by a power of "
        "two. Here a rank's scaler learns only of its own overflows.",
    .citation = "Megatron-Bridge pull request 5591 (August 2026)",
    .url = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5591",
    .flags = "--pp 2 --dp 1 --fp16 --initial-loss-scale 4194304",
    .look_for = "after a skipped step the loss scales of the stages differ by a factor of two",
    .guilty_module = "loss_scale",
    .guilty_axis = "pp"};

}  // namespace ranklab::museum
