#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit gather_backward_slices = {
    .name = "gather-backward-slices",
    .bug = InjectedBug::kGatherBackwardSlices,
    .kind = BugKind::kMissingSum,
    .title = "backward of gathered tokens takes a slice instead of a sum",
    .what_happened =
        "An expert-parallel layer gathered the tokens of all ranks, computed its own experts for them and "
        "added the results up. NeMo Automodel gathered with DTensor, whose backward assumes that the gradient of a "
        "gathered tensor is the same on all ranks and slices it without communication. But each "
        "rank has the gradient of its own experts only: a token got the gradient of one rank's. The loss "
        "stood at about 1.6 instead of 1.4 after 106 steps, found by comparing with another dispatcher. Here "
        "the all-gather dispatcher's backward slices instead of reduce-scattering.",
    .citation = "NeMo Automodel pull request 1260 (February 2026)",
    .url = "https://github.com/NVIDIA-NeMo/Automodel/pull/1260",
    .flags = "--dp 4 --ep 4 --num-experts 4 --moe-token-dispatcher-type allgather",
    .look_for = "the gradient that leaves the experts' layer lacks the other ranks' experts",
    .guilty_module = "layers.*.mlp*",
    .guilty_axis = "ep"};

}  // namespace ranklab::museum
