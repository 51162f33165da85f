#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit empty_expert_skips = {
    .name = "empty-expert-skips",
    .bug = InjectedBug::kEmptyExpertSkips,
    .kind = BugKind::kHang,
    .title = "a rank without tokens leaves the exchange out of backward",
    .what_happened =
        "When no token of a microbatch chose an expert of a rank, Megatron-LM's grouped MLP skipped its "
        "layers, and PaddleFormers returned a new empty tensor. Forward went well. The empty result is "
        "connected to nothing, so backward on that rank never reached the exchanges of tokens, and the other "
        "ranks waited for it until the time limit of the collective, ten minutes or more later, without a "
        "word about the cause. Both fixes keep the graph whole. Here the experts of such a rank return an "
        "unconnected tensor, and the run ends at once with the rank and the calls that do not match.",
    .citation = "Megatron-LM pull request 4851 (May 2026); PaddleFormers pull request 3010 (November 2025)",
    .url = "https://github.com/NVIDIA/Megatron-LM/pull/4851",
    .flags = "--dp 8 --ep 8 --num-experts 8 --moe-router-topk 1 --seq-length 2",
    .look_for = "the verdict: one rank is in a different call than its peers, who exchange gradients of tokens",
    .guilty_module = "layers.*.mlp*",
    .guilty_axis = "ep"};

}  // namespace ranklab::museum
