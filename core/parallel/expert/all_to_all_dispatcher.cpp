// Each assignment is sent as one row of an uneven all_to_all and returns in another; row counts are exchanged once, by
// an all_gather (GShard, arXiv 2006.16668; Megatron-Core's alltoall dispatcher). Bytes per rank: T K H elements each
// way, less what stays on the rank. Forward: 3 collectives. With Routing::slots, both all_to_all are even, of E slots H
// elements per rank, and there are no counts to exchange: 2 collectives.

#include <numeric>

#include "core/parallel/expert/dispatcher.h"
#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/expert_slots.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

int64_t sum(const std::vector<int64_t>& counts, size_t begin, size_t length) {
  const auto first = counts.begin() + static_cast<std::ptrdiff_t>(begin);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(length), int64_t{0});
}

class AllToAllTrip : public ExpertTrip {
 public:
  AllToAllTrip(Communicator& ep, const TensorPrecision& wire, const at::Tensor& tokens_TH, const Routing& routing,
               WorkBeside* beside)
      : AllToAllTrip(ep, wire, tokens_TH, routing, order_by_expert(routing, ep), beside) {}

  at::Tensor combine(const at::Tensor& outputs_NH) override {
    at::Tensor outputs = outputs_NH;
    if (by_expert_N_.defined()) outputs = outputs.index_select(0, inverse_order(by_expert_N_));
    return weighted_sum(exchange_rows(outputs, ep_, recv_rows_, send_rows_, kCombineExchange), order_, routing_);
  }

 private:
  AllToAllTrip(Communicator& ep, const TensorPrecision& wire, const at::Tensor& tokens_TH, const Routing& routing,
               const SharedOrder& order, WorkBeside* beside)
      : ep_(ep), routing_(routing), order_(order.own) {
    const size_t own = static_cast<size_t>(routing.num_experts / ep.size());
    const size_t first = own * static_cast<size_t>(ep.rank());
    const auto& all = order.counts;
    std::vector<std::vector<int64_t>> arriving;
    for (size_t peer = 0; peer < all.size(); ++peer) {
      send_rows_.push_back(sum(order_.counts, own * peer, own));
      recv_rows_.push_back(sum(all[peer], first, own));
      const auto begin = all[peer].begin() + static_cast<std::ptrdiff_t>(first);
      arriving.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(own));
    }
    counts_.assign(own, 0);
    for (const auto& counts : arriving) {
      for (size_t expert = 0; expert < own; ++expert) counts_[expert] += counts[expert];
    }
    const at::Tensor token_M = order_.flat_M.floor_divide(routing.experts_TK.size(1));
    rows_NH_ = exchange_rows(tokens_TH.index_select(0, token_M), ep_, send_rows_, recv_rows_,
                             dispatch_exchange({wire, tokens_TH.size(1)}), beside);
    if (ep_.size() == 1 || own == 1) return;  // the rows arrive sorted by expert
    by_expert_N_ = expert_major(arriving, tokens_TH.options());
    rows_NH_ = rows_NH_.index_select(0, by_expert_N_);
  }

  Communicator& ep_;
  Routing routing_;
  AssignmentOrder order_;
  std::vector<int64_t> send_rows_, recv_rows_;  // per ep rank
  at::Tensor by_expert_N_;                      // defined if rows arrive by source and need sorting by expert
};

class PaddedAllToAllTrip : public ExpertTrip {
 public:
  PaddedAllToAllTrip(Communicator& ep, const TensorPrecision& wire, const at::Tensor& tokens_TH, const Routing& routing,
                     WorkBeside* beside)
      : ep_(ep), slots_(routing), own_experts_(routing.num_experts / ep.size()) {
    padded_ = true;
    counts_.assign(static_cast<size_t>(own_experts_), ep.size() * routing.slots);
    const at::Tensor arrived =
        exchange_rows(slots_.rows(tokens_TH), ep, {}, {}, dispatch_exchange({wire, tokens_TH.size(1)}), beside);
    rows_NH_ = rows_by_expert(arrived, ep.size(), own_experts_);
  }

  at::Tensor combine(const at::Tensor& outputs_NH) override {
    return slots_.weighted_sum(
        exchange_rows(rows_by_source(outputs_NH, ep_.size(), own_experts_), ep_, {}, {}, kCombineExchange));
  }

 private:
  Communicator& ep_;
  ExpertSlots slots_;
  int64_t own_experts_;
};

class AllToAllDispatcher : public TokenDispatcher {
 public:
  explicit AllToAllDispatcher(const DispatcherContext& context) : ep_(*context.ep), wire_(context.wire) {}
  std::unique_ptr<ExpertTrip> dispatch(const at::Tensor& tokens_TH, const Routing& routing,
                                       WorkBeside* beside) override {
    if (routing.slots > 0) return std::make_unique<PaddedAllToAllTrip>(ep_, wire_, tokens_TH, routing, beside);
    return std::make_unique<AllToAllTrip>(ep_, wire_, tokens_TH, routing, beside);
  }

 private:
  Communicator& ep_;
  TensorPrecision wire_;
};

}  // namespace

std::unique_ptr<TokenDispatcher> make_all_to_all_dispatcher(const DispatcherContext& context) {
  return std::make_unique<AllToAllDispatcher>(context);
}

}  // namespace ranklab
