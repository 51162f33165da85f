#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit last_stage_unsynced = {
    .name = "last-stage-unsynced",
    .bug = InjectedBug::kLastStageUnsynced,
    .kind = BugKind::kMissingSum,
    .title = "the last pipeline stage never reduces its gradients",
    .what_happened =
        "picotron switched gradient synchronization on for the last backward of the cooldown phase of 1F1B. "
        "The last stage has no cooldown, so it never synchronized; the pull request that fixed it lists the "
        "wrong attempts one by one. Data-parallel replicas of the last stage drift apart, while all other "
        "stages are right and get gradients from each of them. Here the reducer of the stage with the head "
        "starts no reduction.",
    .citation = "picotron pull request 5 (November 2024)",
    .url = "https://github.com/huggingface/picotron/pull/5",
    .flags = "--pp 2 --dp 2 --num-microbatches 4",
    .look_for = "gradients of the last stage differ over dp; those of the first are equal",
    .guilty_module = "head*",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
