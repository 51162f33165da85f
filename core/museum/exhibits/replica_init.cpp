#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit replica_init = {
    .name = "replica-init",
    .bug = InjectedBug::kReplicaInit,
    .kind = BugKind::kNotSynchronized,
    .title = "groups of replicas start with different weights",
    .what_happened =
        "OLMo-core drew each rank's part of a weight with a seed of its own. FSDP does not synchronize initial "
        "weights: unlike DDP, PyTorch's fully_shard broadcasts nothing, so with hybrid sharding each replica "
        "group trained a model of its own, and gradients of different models were averaged. A later change "
        "made the run that was hit look better after a restart, because the checkpoint held the first group's "
        "weights only, which then all groups loaded. The fix draws the same whole tensors whatever the "
        "layout. Here the groups of --num-distributed-optimizer-instances get different seeds.",
    .citation = "OLMo-core pull request 319 (July 2025)",
    .url = "https://github.com/allenai/OLMo-core/pull/319",
    .flags = "--dp 4 --zero-stage 1 --num-distributed-optimizer-instances 2",
    .look_for = "embedding.weight differs between the two groups before the first step",
    .guilty_module = "embedding*",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
