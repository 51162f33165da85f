#include "core/museum/exhibits/exhibits.h"

namespace ranklab::museum {

const Exhibit dense_over_edp = {
    .name = "dense-over-edp",
    .bug = InjectedBug::kDenseOverEdp,
    .kind = BugKind::kWrongGroup,
    .title = "dense gradients are summed over the ranks that share experts",
    .what_happened =
        "Expert parallelism has two groups: all data-parallel ranks hold the dense weights, and only those "
        "with the same experts hold an expert. nano-train reduced dense gradients with the expert rank fixed, "
        "so replicas with different experts never exchanged dense gradients and drifted apart, contrary to its own "
        "design document. Megatron-LM has a test for this kind: it fills gradients with 2 to the power of the rank, "
        "so that the sum names exactly the ranks that took part. Here the reducer of dense gradients gets the "
        "group of the experts.",
    .citation =
        "nano-train, topology.py; Megatron-LM, "
        "tests/unit_tests/distributed/test_grad_sync_with_expert_parallel.py",
    .url =
        "https://github.com/NVIDIA/Megatron-LM/blob/main/tests/unit_tests/distributed/"
        "test_grad_sync_with_expert_parallel.py",
    .flags = "--dp 4 --ep 2 --num-experts 4",
    .look_for = "reduced dense gradients are equal in pairs of ranks and lack half of the tokens",
    .guilty_module = "head*",
    .guilty_axis = "dp"};

}  // namespace ranklab::museum
