// A rank's tensors and memory, as numbers for whoever has stopped it (core/live/stepper_probe.h). Cost: nothing until
// it is asked. Thread rule: as RankProbe.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/live/stepper_probe.h"
#include "core/nn/parameter.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

// `registry` outlives the result. `shards`: what of the weights is on this rank, where parameters come and go (ZeRO
// stage 3); else the parameters are.
std::shared_ptr<const RankProbe> make_rank_probe(const ParameterRegistry& registry, std::shared_ptr<MemoryBook> book,
                                                 std::function<std::vector<at::Tensor>()> shards = {});

}  // namespace ranklab
