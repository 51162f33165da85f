// Remote Direct EP (github.com/Noumena-Network/nmoe): a rank writes each token, with its weights and experts, once
// directly into the buffer of every rank that owns experts of it, and the owner writes the sum of its experts' outputs
// directly back. No collective and no barrier: a rank waits only until all sources have written its rows
// (peer_memory.h). Bytes per rank: (ranks of a token) (H + 2 K) elements and 16 bytes, each way. Needs memory that
// ranks share: rank threads here, NVSHMEM or CUDA IPC on GPUs.

#include <optional>

#include "core/base/error.h"
#include "core/parallel/expert/deliver.h"
#include "core/parallel/expert/dispatcher.h"
#include "core/parallel/expert/packed_hop.h"
#include "core/parallel/expert/packed_tokens.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor owners(int64_t num_experts, int ranks, const at::Device& device) {
  return at::arange(num_experts, at::TensorOptions(at::kLong).device(device)).floor_divide(num_experts / ranks);
}

class RdepTrip : public ExpertTrip {
 public:
  RdepTrip(Communicator& ep, PeerMemory* memory, const RowSpread& unknown, const TensorPrecision& wire,
           const at::Tensor& tokens_TH, const Routing& routing) {
    const ExpertColumns columns(tokens_TH.scalar_type(), routing);
    const int64_t own = routing.num_experts / ep.size();
    at::Tensor packed = pack_tokens(tokens_TH, routing, columns);
    const Carrier carrier = [memory](const at::Tensor& rows, const std::vector<int64_t>& sent,
                                     std::vector<int64_t>& received, ExchangePurpose purpose) {
      std::vector<int64_t> arrived;
      const at::Tensor out = deliver_rows(rows, *memory, sent, arrived, purpose);
      received = arrived;
      return out;
    };
    if (memory != nullptr) {
      const at::Tensor owner_E = owners(routing.num_experts, ep.size(), tokens_TH.device());
      const at::Tensor experts = named_experts(routing);
      packed = hop_.go(packed, experts, columns, onward(experts, owner_E, ep.size(), unknown), {}, wire, carrier);
    }
    own_.emplace(unpack_tokens(packed, columns), own * ep.rank(), own, routing.experts_TK.numel());
    counts_ = own_->counts();
    rows_NH_ = own_->rows();
  }

  at::Tensor combine(const at::Tensor& outputs_NH) override { return hop_.come_back(own_->weighted_sum(outputs_NH)); }

 private:
  PackedHop hop_;
  std::optional<OwnAssignments> own_;
};

class RdepDispatcher : public TokenDispatcher {
 public:
  explicit RdepDispatcher(const DispatcherContext& context) : ep_(*context.ep), wire_(context.wire) {
    if (ep_.size() == 1) return;
    unknown_ = spread_over_ranks(context.moe, ep_.size());
    memory_ = context.memory ? context.memory : peer_memory_of(ep_);
    RANKLAB_CHECK(memory_ != nullptr, ErrorKind::kEnvironment, .where = "experts",
                  .what = "the rdep dispatcher writes into its peers' memory, which ranks of this world do not share",
                  .got = ep_.group().label(), .want = "ranks that are threads of one process",
                  .fix = "--moe-token-dispatcher-type alltoall, or run without a launcher");
  }
  std::unique_ptr<ExpertTrip> dispatch(const at::Tensor& tokens_TH, const Routing& routing) override {
    return std::make_unique<RdepTrip>(ep_, memory_.get(), unknown_, wire_, tokens_TH, routing);
  }

 private:
  Communicator& ep_;
  RowSpread unknown_;
  TensorPrecision wire_;
  PeerMemoryPtr memory_;  // null in a group of one
};

}  // namespace

std::unique_ptr<TokenDispatcher> make_rdep_dispatcher(const DispatcherContext& context) {
  return std::make_unique<RdepDispatcher>(context);
}

}  // namespace ranklab
