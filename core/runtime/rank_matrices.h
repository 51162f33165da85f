// The hidden matrices of one rank's part of a model, as an optimizer of whole matrices maps them (Optimizer::
// map_matrices_with), in the way that --muon-distribution names:
//   duplicated     every data-parallel rank maps every matrix; shards are gathered
//   distributed    each matrix is mapped by one data-parallel rank and sent back
//   layer-sharded  shards hold whole matrices, so that each rank maps its own (Megatron-LM's layer-wise optimizer);
//                  with ZeRO stage 3 as distributed: a layer has too few matrices to give every rank its part of them
// Without sharding the last two share the work, and the results are gathered.
// Dense matrices are whole over tp, experts' over etp. Cost and memory: matrix_exchange.h. Thread rule: its rank's
// thread; every rank maps.
#pragma once
#include <vector>

#include "core/comm/rank_context.h"
#include "core/config/train_config.h"
#include "core/optim/optimizer.h"
#include "core/parallel/data/grad_reducer.h"
#include "core/parallel/data/matrix_exchange.h"

namespace ranklab {

// How the plan's optimizer has its matrices lie in buckets that are sharded.
MatrixBuckets matrix_buckets(const RunPlan& plan);

class RankMatrices {
 public:
  // The reducers of dense parameters and of experts' outlive this.
  RankMatrices(const RunPlan& plan, RankContext& ctx, const GradReducer& dense, Axis dense_axis,
               const GradReducer& experts, Axis experts_axis);
  // Fills GradBucket::work; the buckets are those of the reducers.
  void note_work(std::vector<GradBucket>& dense, std::vector<GradBucket>& experts) const;
  void map(const std::vector<Parameter*>& pieces, std::vector<at::Tensor>& values, const MatrixMap& map) const;

 private:
  const GradReducer& dense_reducer_;
  const GradReducer& expert_reducer_;
  MatrixExchange dense_, experts_;
};

}  // namespace ranklab
