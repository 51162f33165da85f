// The hidden matrices of one rank's part of a model, in the form in which an optimizer of whole matrices maps them
// (Optimizer::map_matrices_with). The way depends on --muon-distribution:
//   duplicated     every data-parallel rank maps every matrix; shards are gathered
//   distributed    each matrix is mapped by one data-parallel rank and sent back
//   layer-sharded  shards hold whole matrices, so that each rank maps its own (Megatron-LM's layer-wise optimizer);
//                  with ZeRO stage 3 the same as distributed: a layer has too few matrices to give every rank a share
// Without sharding the last two divide the work, and the results are gathered. Dense matrices are assembled over tp,
// experts' over etp. Cost and memory: matrix_exchange.h. Thread rule: its rank's thread; every rank maps.
#pragma once
#include <vector>

#include "core/comm/rank_context.h"
#include "core/config/train_config.h"
#include "core/optim/optimizer.h"
#include "core/parallel/data/grad_reducer.h"
#include "core/parallel/data/matrix_exchange.h"

namespace ranklab {

// How matrices of the plan's optimizer are laid out in sharded buckets.
MatrixBuckets matrix_buckets(const RunPlan& plan);

class RankMatrices {
 public:
  // The reducers of dense parameters and of experts must outlive this.
  RankMatrices(const RunPlan& plan, RankContext& ctx, const GradReducer& dense, Axis dense_axis,
               const GradReducer& experts, Axis experts_axis);
  // Fills GradBucket::work; the buckets must be those of the reducers.
  void note_work(std::vector<GradBucket>& dense, std::vector<GradBucket>& experts) const;
  void map(const std::vector<Parameter*>& pieces, std::vector<at::Tensor>& values, const MatrixMap& map) const;

 private:
  const GradReducer& dense_reducer_;
  const GradReducer& expert_reducer_;
  MatrixExchange dense_, experts_;
};

}  // namespace ranklab
