#include "core/parallel/expert/tensor_split.h"

#include <numeric>

#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/expert_slots.h"
#include "core/parallel/expert/routing.h"
#include "core/sim/aten.h"

namespace ranklab {

EtpTokens::EtpTokens(Communicator& etp, const ExpertTrip& trip)
    : etp_(etp), rows_(trip.rows()), counts_(trip.counts()) {
  if (etp.size() == 1) return;
  const at::Tensor rows_NH = trip.rows();
  const std::vector<int64_t> counts = trip.counts();
  if (trip.is_padded()) {
    padded_experts_ = static_cast<int64_t>(counts.size());
    rank_rows_.assign(static_cast<size_t>(etp.size()), rows_NH.size(0));
    for (int64_t& count : counts_) count *= etp.size();
    rows_ = rows_by_expert(gather_rows(rows_NH, etp, rank_rows_, dispatch_exchange({})), etp.size(), padded_experts_);
    return;
  }
  const auto all = share_counts(counts, etp, rows_NH.options());
  counts_.assign(counts.size(), 0);
  for (const auto& of_rank : all) {
    rank_rows_.push_back(std::accumulate(of_rank.begin(), of_rank.end(), int64_t{0}));
    for (size_t expert = 0; expert < counts_.size(); ++expert) counts_[expert] += of_rank[expert];
  }
  rows_ = gather_rows(rows_NH, etp_, rank_rows_, dispatch_exchange({}));
  if (counts.size() == 1) return;
  by_expert_ = expert_major(all, rows_NH.options());
  rows_ = rows_.index_select(0, by_expert_);
}

at::Tensor EtpTokens::own_outputs(const at::Tensor& partial_outputs) const {
  if (etp_.size() == 1) return partial_outputs;
  at::Tensor by_rank = partial_outputs;
  if (padded_experts_ > 0) by_rank = rows_by_source(by_rank, etp_.size(), padded_experts_);
  if (by_expert_.defined()) by_rank = by_rank.index_select(0, inverse_order(by_expert_));
  return reduce_rows(by_rank, etp_, rank_rows_, kCombineExchange);
}

}  // namespace ranklab
