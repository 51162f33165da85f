// A token is sent to each node at most once, however many of its experts are there, and within the node to each rank at
// most once (DeepEP's dispatch; DeepSeek-V3, arXiv 2412.19437, section 3.2.2). In combine, a rank sums its own experts'
// outputs for a token, the node's gateway sums those of its ranks, and the token's rank sums those of the nodes. Bytes
// per rank between nodes: (nodes of a token) H + 2 K elements instead of K H. Forward: 5 collectives, 3 in a group on
// one node.

#include <optional>

#include "core/parallel/expert/dispatcher.h"
#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/node_hops.h"
#include "core/parallel/expert/packed_hop.h"
#include "core/parallel/expert/packed_tokens.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// For meta tensors, whose routing is unknown: the destinations of a rank's hops to nodes, to ranks, and within its
// node.
struct UnknownHops {
  RowSpread nodes, ranks, in_node;
};

UnknownHops unknown_hops(const MoeConfig& moe, const NodeHops& hops, const Communicator& ep) {
  UnknownHops out{.nodes = {}, .ranks = spread_over_ranks(moe, ep.size()), .in_node = {}};
  const auto chance_of_node = [&](int node) {
    return chance_of_place(moe, moe.num_experts / ep.size() * hops.members(node));
  };
  for (int node = 0; node < hops.num_nodes(); ++node)
    out.nodes.add(hops.gateway(node, ep.rank()), chance_of_node(node));
  const int own_node = hops.node(ep.rank());
  for (int rank = 0; rank < ep.size(); ++rank)
    if (hops.node(rank) == own_node)
      out.in_node.add(rank, out.ranks.chances[static_cast<size_t>(rank)] / chance_of_node(own_node));
  return out;
}

class DedupTrip : public ExpertTrip {
 public:
  DedupTrip(Communicator& ep, const NodeHops& hops, const UnknownHops& unknown, const TensorPrecision& wire,
            const at::Tensor& tokens_TH, const Routing& routing, WorkBeside* beside)
      : ep_(ep),
        hops_(hops),
        own_experts_(routing.num_experts / ep.size()),
        columns_(tokens_TH.scalar_type(), routing) {
    const Carrier carrier = [&ep, beside](const at::Tensor& rows, const std::vector<int64_t>& sent,
                                          std::vector<int64_t>& received, ExchangePurpose purpose) {
      return exchange_rows(rows, ep, sent, received, purpose, purpose.forward == Purpose::kDispatch ? beside : nullptr);
    };
    device_ = tokens_TH.device();
    at::Tensor packed = pack_tokens(tokens_TH, routing, columns_), experts = named_experts(routing);
    Onward to_nodes, to_ranks;
    if (hops_.crosses_nodes()) to_nodes = onward(experts, gateways(), ep.size(), unknown.nodes);
    if (hops_.spreads_in_node()) to_ranks = onward(experts, owners(), ep.size(), unknown.ranks);
    const std::vector<TokenSpread> spreads = share_spreads(to_nodes, to_ranks);
    if (hops_.crosses_nodes()) {
      packed = to_nodes_.go(packed, experts, columns_, to_nodes, hops_.first(ep.rank(), spreads), wire, carrier);
      experts = columns_.read(packed);
      if (hops_.spreads_in_node()) to_ranks = onward(experts, ranks_of_node(), ep.size(), unknown.in_node);
    }
    if (hops_.spreads_in_node())
      packed = to_ranks_.go(packed, experts, columns_, to_ranks, hops_.second(ep.rank(), spreads), wire, carrier);
    own_.emplace(unpack_tokens(packed, columns_), own_experts_ * ep.rank(), own_experts_, routing.experts_TK.numel());
    counts_ = own_->counts();
    rows_NH_ = own_->rows();
  }

  at::Tensor combine(const at::Tensor& outputs_NH) override {
    return to_nodes_.come_back(to_ranks_.come_back(own_->weighted_sum(outputs_NH)));
  }

 private:
  // The destination of each expert [E], as a function of the rank that owns it.
  template <typename Place>
  at::Tensor places(const Place& place) const {
    std::vector<int64_t> out;
    for (int rank = 0; rank < ep_.size(); ++rank) out.insert(out.end(), static_cast<size_t>(own_experts_), place(rank));
    return at::tensor(out, at::kLong).to(device_);
  }
  at::Tensor owners() const {
    return places([](int owner) { return owner; });
  }
  at::Tensor gateways() const {
    return places([&](int owner) { return hops_.gateway(hops_.node(owner), ep_.rank()); });
  }
  at::Tensor ranks_of_node() const {
    return places([&](int owner) { return hops_.node(owner) == hops_.node(ep_.rank()) ? owner : ep_.size(); });
  }

  // Exchanges, once per dispatch, how many of its own tokens each rank sends to each node and rank, for those hops that
  // exist.
  std::vector<TokenSpread> share_spreads(const Onward& to_nodes, const Onward& to_ranks) const {
    std::vector<int64_t> mine = to_ranks.counts;
    for (int node = 0; hops_.crosses_nodes() && node < hops_.num_nodes(); ++node)
      mine.push_back(to_nodes.counts[static_cast<size_t>(hops_.gateway(node, ep_.rank()))]);
    if (mine.empty()) return {};
    std::vector<TokenSpread> out;
    const auto ranks = static_cast<std::ptrdiff_t>(to_ranks.counts.size());
    for (const auto& told : share_counts(mine, ep_, at::TensorOptions().device(device_)))
      out.push_back({.node = {told.begin() + ranks, told.end()}, .rank = {told.begin(), told.begin() + ranks}});
    return out;
  }

  Communicator& ep_;
  const NodeHops& hops_;
  int64_t own_experts_;
  ExpertColumns columns_;
  at::Device device_ = at::kCPU;
  PackedHop to_nodes_, to_ranks_;
  std::optional<OwnAssignments> own_;
};

class DedupDispatcher : public TokenDispatcher {
 public:
  explicit DedupDispatcher(const DispatcherContext& context)
      : ep_(*context.ep),
        hops_(context.ep->group(), context.gpus_per_node),
        unknown_(unknown_hops(context.moe, hops_, ep_)),
        wire_(context.wire) {}
  std::unique_ptr<ExpertTrip> dispatch(const at::Tensor& tokens_TH, const Routing& routing,
                                       WorkBeside* beside) override {
    return std::make_unique<DedupTrip>(ep_, hops_, unknown_, wire_, tokens_TH, routing, beside);
  }

 private:
  Communicator& ep_;
  NodeHops hops_;
  UnknownHops unknown_;
  TensorPrecision wire_;
};

}  // namespace

std::unique_ptr<TokenDispatcher> make_dedup_dispatcher(const DispatcherContext& context) {
  return std::make_unique<DedupDispatcher>(context);
}

}  // namespace ranklab
