#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit norm_averaged = {
    .name = "norm-averaged",
    .bug = InjectedBug::kNormAveraged,
    .kind = BugKind::kWrongScale,
    .title = "norm gradients are averaged over tp instead of summed",
    .what_happened =
        "GPT-NeoX's first sequence parallelism reduced the gradients of norms over the model-parallel ranks with a "
        "hook that took their mean. Each rank has the gradient of its own tokens only, so the sum is the gradient and "
        "the mean is too small by the number of ranks. The hook was also registered before the engine was made, and "
        "never ran. The fix moved it and made it a sum; its author printed gradients and weights to see the copies "
        "agree, and noted that norm weights moved much more slowly than without sequence parallelism. AdamW hides "
        "such a factor in its own division, so the loss shows little; a comparison of gradients shows it at once.",
    .citation = "GPT-NeoX pull request 1259 (August 2024)",
    .url = "https://github.com/EleutherAI/gpt-neox/pull/1259",
    .flags = "--tp 4",
    .look_for = "gradients of norms are a fourth of one rank's, equal on all tp ranks",
    .guilty_module = "*norm*",
    .guilty_axis = "tp"};

}  // namespace ranklab::museum
