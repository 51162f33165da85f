// Gives a debugger that has stopped a rank access to its tensors and memory as numbers (core/live/stepper_probe.h).
// Cost: nothing until it is used. Thread rule: made on the rank's thread; then as for RankProbe.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/live/stepper_probe.h"
#include "core/nn/parameter.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

// `registry` must outlive the result. `shards`: returns this rank's shards of the weights, where parameters are
// gathered and freed (ZeRO stage 3); otherwise the parameters themselves are used.
std::shared_ptr<const RankProbe> make_rank_probe(const ParameterRegistry& registry, std::shared_ptr<MemoryBook> book,
                                                 std::function<std::vector<at::Tensor>()> shards = {});

}  // namespace ranklab
