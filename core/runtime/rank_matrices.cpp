#include "core/runtime/rank_matrices.h"

#include <utility>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

MatrixBuckets matrix_buckets(const RunPlan& plan) {
  if (plan.config.optimizer != OptimizerKind::kMuon) return MatrixBuckets::kMixed;
  const bool whole = plan.config.muon_distribution == MuonDistribution::kLayerSharded;
  return whole && !plan.zero().parameters ? MatrixBuckets::kWhole : MatrixBuckets::kApart;
}

namespace {

bool has_owners(const RunPlan& plan) { return plan.config.muon_distribution != MuonDistribution::kDuplicated; }

}  // namespace

RankMatrices::RankMatrices(const RunPlan& plan, RankContext& ctx, const GradReducer& dense, Axis dense_axis,
                           const GradReducer& experts, Axis experts_axis)
    : dense_reducer_(dense),
      expert_reducer_(experts),
      dense_(dense.buckets(), ctx.comm(dense_axis), ctx.comm(Axis::kTp), has_owners(plan)),
      experts_(experts.buckets(), ctx.comm(experts_axis), ctx.comm(Axis::kEtp), has_owners(plan)) {}

void RankMatrices::note_work(std::vector<GradBucket>& dense, std::vector<GradBucket>& experts) const {
  for (auto [buckets, exchange] : {std::pair{&dense, &dense_}, {&experts, &experts_}}) {
    std::vector<std::vector<MatrixWork>> work = exchange->work();
    size_t next = 0;
    for (GradBucket& bucket : *buckets)
      if (bucket.layout.matrix != MatrixBuckets::kMixed) bucket.work = std::move(work[next++]);
  }
}

void RankMatrices::map(const std::vector<Parameter*>& pieces, std::vector<at::Tensor>& values,
                       const MatrixMap& map) const {
  MatrixExchange::Pieces dense, experts;
  const auto origin = [&](const Parameter* piece) {
    return (piece->is_expert ? expert_reducer_ : dense_reducer_).origin_of(piece).first;
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    // Offloaded states are in host memory, but matrices are mapped where the parameters are.
    const at::Tensor flat = values[i].to(pieces[i]->data.device()).view({-1});
    (pieces[i]->is_expert ? experts : dense)[origin(pieces[i])] = flat;
  }
  {
    const at::NoGradGuard no_grad;
    const MemoryScope memory(MemoryCategory::kBuffers);
    MatrixExchange::UnderWay dense_going = dense_.send(dense), experts_going = experts_.send(experts);
    MatrixExchange::UnderWay dense_coming = dense_.map(std::move(dense_going), dense, map);
    experts_.take(experts_.map(std::move(experts_going), experts, map), experts);
    dense_.take(std::move(dense_coming), dense);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const at::Tensor& mapped = (pieces[i]->is_expert ? experts : dense).at(origin(pieces[i]));
    values[i] = mapped.view(values[i].sizes()).to(values[i].device());
  }
}

}  // namespace ranklab
