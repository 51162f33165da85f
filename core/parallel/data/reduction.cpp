#include "core/parallel/data/reduction.h"

namespace ranklab {

std::unique_ptr<Reduction> make_reduction(const ReductionSpec& spec) {
  const auto make = spec.zero.reduction == GradReduction::kAll ? make_reduce_all : make_reduce_shards;
  return spec.replicas != nullptr ? make_reduce_hybrid(make(spec), *spec.replicas) : make(spec);
}

}  // namespace ranklab
