#include "core/parallel/data/reduction.h"

namespace ranklab {

std::unique_ptr<Reduction> make_reduction(const ReductionSpec& spec) {
  switch (spec.zero.reduction) {
    case GradReduction::kAll:
      return make_reduce_all(spec);
    case GradReduction::kShards:
      return spec.replicas != nullptr ? make_reduce_hybrid(spec) : make_reduce_shards(spec);
  }
  return nullptr;
}

}  // namespace ranklab
