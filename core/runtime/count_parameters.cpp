#include "core/runtime/count_parameters.h"

#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The elements of the parameters that this pipeline rank counts.
int64_t elements_here(const ParameterRegistry& registry, const RankContext& ctx) {
  int64_t count = 0;
  for (const Parameter* parameter : registry.parameters()) {
    const std::vector<int>& holders = parameter->pipeline_ranks;
    if (!holders.empty() && holders.front() != ctx.coordinate(Axis::kPp)) continue;
    int64_t elements = parameter->is_expert ? ctx.size(Axis::kEp) : 1;  // its peers own other experts
    for (const int64_t size : parameter->partition.global_shape) elements *= size;
    count += elements;
  }
  return count;
}

}  // namespace

int64_t count_parameters(const ParameterRegistry& registry, const RankContext& ctx, Communicator& world) {
  const int64_t here = elements_here(registry, ctx);
  if (ctx.size(Axis::kPp) == 1) return here;
  const bool speaks = ctx.coordinate(Axis::kTp) == 0 && ctx.coordinate(ctx.replica_axis()) == 0;
  const auto options = at::TensorOptions(at::kLong).device(ctx.control_device());
  return world.all_reduce(at::full({1}, speaks ? here : 0, options)).item<int64_t>();
}

}  // namespace ranklab
