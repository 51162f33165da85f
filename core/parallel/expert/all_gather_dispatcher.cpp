// Every rank gathers the tokens of the whole group, each once with its experts and weights, computes its own experts'
// outputs, and the partial sums are reduce-scattered back to the tokens' ranks (Megatron-Core's allgather dispatcher).
// Simple, and good when a token goes to most ranks anyway. Bytes per rank, in elements: out (ep - 1) T (H + 2 K), back
// (ep - 1) T H for any K. Forward: 3 collectives.

#include "core/parallel/expert/dispatcher.h"
#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/packed_tokens.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

std::vector<int64_t> token_counts(Communicator& ep, const at::Tensor& tokens_TH) {
  std::vector<int64_t> rows;
  for (const auto& of_rank : share_counts({tokens_TH.size(0)}, ep, tokens_TH.options())) rows.push_back(of_rank[0]);
  return rows;
}

class AllGatherTrip : public ExpertTrip {
 public:
  AllGatherTrip(Communicator& ep, const TensorPrecision& wire, const at::Tensor& tokens_TH, const Routing& routing,
                WorkBeside* beside)
      : ep_(ep),
        rank_rows_(token_counts(ep, tokens_TH)),
        columns_(tokens_TH.scalar_type(), routing),
        own_(unpack_tokens(gather_rows(pack_tokens(tokens_TH, routing, columns_), ep, rank_rows_,
                                       dispatch_exchange({wire, tokens_TH.size(1)}), beside),
                           columns_),
             routing.num_experts / ep.size() * ep.rank(), routing.num_experts / ep.size(), routing.experts_TK.numel()) {
    counts_ = own_.counts();
    rows_NH_ = own_.rows();
  }

  at::Tensor combine(const at::Tensor& outputs_NH) override {
    return reduce_rows(own_.weighted_sum(outputs_NH), ep_, rank_rows_, kCombineExchange);
  }

 private:
  Communicator& ep_;
  std::vector<int64_t> rank_rows_;
  ExpertColumns columns_;
  OwnAssignments own_;
};

class AllGatherDispatcher : public TokenDispatcher {
 public:
  explicit AllGatherDispatcher(const DispatcherContext& context) : ep_(*context.ep), wire_(context.wire) {}
  std::unique_ptr<ExpertTrip> dispatch(const at::Tensor& tokens_TH, const Routing& routing,
                                       WorkBeside* beside) override {
    return std::make_unique<AllGatherTrip>(ep_, wire_, tokens_TH, routing, beside);
  }

 private:
  Communicator& ep_;
  TensorPrecision wire_;
};

}  // namespace

std::unique_ptr<TokenDispatcher> make_all_gather_dispatcher(const DispatcherContext& context) {
  return std::make_unique<AllGatherDispatcher>(context);
}

}  // namespace ranklab
