// A rank's tensors and memory, as numbers for a debugger that has stopped it (core/live/stepper_probe.h). Cost: nothing
// until it is used. Thread rule: made on the rank's thread; then as RankProbe.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/live/stepper_probe.h"
#include "core/nn/parameter.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

// `registry` outlives the result. `shards`: this rank's shards of the weights, where parameters are gathered and freed
// (ZeRO stage 3); else the parameters themselves are used.
std::shared_ptr<const RankProbe> make_rank_probe(const ParameterRegistry& registry, std::shared_ptr<MemoryBook> book,
                                                 std::function<std::vector<at::Tensor>()> shards = {});

}  // namespace ranklab
