// While it exists, checks the types of a rank's tensors during one training step (core/spmd/type_checker.h): it tells
// the checker the model's parameters and where modules begin and end. Cost: that of the checker and of module hooks.
// Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/runtime/components.h"
#include "core/spmd/rank_partitions.h"
#include "core/spmd/type_report.h"

namespace ranklab {

class RankTypes {
 public:
  // `partitions`: those of the run's mesh.
  RankTypes(StepContext& context, const RankPartitions& partitions, const std::shared_ptr<TypeReport>& report);
  ~RankTypes();
  RankTypes(const RankTypes&) = delete;
  RankTypes& operator=(const RankTypes&) = delete;

 private:
  class Follower;
  std::unique_ptr<Follower> follower_;
};

}  // namespace ranklab
