#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit norm_per_ep_group = {
    .name = "norm-per-ep-group",
    .bug = InjectedBug::kNormPerEpGroup,
    .kind = BugKind::kMissingSum,
    .title = "each ep rank clips by a norm of its own",
    .what_happened =
        "NeMo Automodel's clipping summed a parameter's squares over the mesh axes that the parameter was annotated "
        "with. Its experts were plain tensors without annotations, so every ep rank had a different norm, of the dense "
        "weights and its own experts, and clipped by it. Dense weights are shared by the ranks and were "
        "scaled by different factors: copies drift. On a test of two ranks the norms were 40.2 and 4.0, and "
        "every log showed a number that looked fine. Here the squares of experts are not summed over ep.",
    .citation = "NeMo Automodel issue 3816 (September 2026)",
    .url = "https://github.com/NVIDIA-NeMo/Automodel/issues/3816",
    .flags = "--dp 4 --ep 4 --num-experts 4 --clip-grad 0.2",
    .look_for = "the gradient's norm differs over ep ranks",
    .guilty_module = "grad_norm",
    .guilty_axis = "ep"};

}  // namespace ranklab::museum
