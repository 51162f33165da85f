// Remote Direct EP (github.com/Noumena-Network/nmoe): a rank writes each token, with its weights and experts, once
// directly into the buffer of every rank that owns experts of it, and the owner writes the sum of its experts' outputs
// directly back. No collective and no barrier: a rank waits only until all sources have written its rows
// (peer_memory.h). Bytes per rank: (ranks of a token) (H + 2 K) elements and 16 bytes, each way. Needs memory that
// ranks share: rank threads here, NVSHMEM or CUDA IPC on GPUs.

#include <ATen/core/Tensor.h>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/comm/peer_memory.h"
#include "core/comm/purpose.h"
#include "core/nn/custom_function.h"
#include "core/parallel/expert/dispatcher.h"
#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/packed_hop.h"
#include "core/parallel/expert/packed_tokens.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr int64_t kStampBytes = 2 * sizeof(int64_t);

// [n, 16 + W]: the source, the row's index among the rows for this receiver, and then the row.
at::Tensor stamped(const at::Tensor& bytes, int source) {
  const at::Tensor index = at::arange(bytes.size(0), at::TensorOptions(at::kLong).device(bytes.device()));
  const at::Tensor stamp = at::stack({at::full_like(index, source), index}, 1);
  return at::cat({row_bytes(stamp), bytes}, 1);
}

struct Sorted {
  at::Tensor rows;                // [N, W] bytes
  std::vector<int64_t> received;  // rows per source
};

// For meta tensors, whose stamps have no values: takes the counts from the notes of the puts.
Sorted by_note(const Delivery& delivery, int64_t width, Sorted out) {
  const int64_t stamped_bytes = kStampBytes + width;
  for (const PutNote& note : delivery.notes)
    out.received[static_cast<size_t>(note.source)] += note.bytes / stamped_bytes;
  const at::Tensor order = at::empty({delivery.rows.size(0)}, delivery.rows.options().dtype(at::kLong));
  out.rows = delivery.rows.narrow(1, kStampBytes, width).index_select(0, order);
  return out;
}

Sorted by_source(const Delivery& delivery, int64_t width, int members) {
  const at::Tensor& arrived = delivery.rows;
  Sorted out{at::empty({0, width}, arrived.options()), std::vector<int64_t>(static_cast<size_t>(members), 0)};
  if (arrived.size(0) == 0) return out;
  if (arrived.is_meta()) return by_note(delivery, width, std::move(out));
  // A tensor of a single row counts as contiguous with any row stride, which contiguous() would keep.
  const at::Tensor stamps = arrived.narrow(1, 0, kStampBytes).clone(at::MemoryFormat::Contiguous).view(at::kLong);
  const int64_t* stamp = stamps.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < arrived.size(0); ++row) ++out.received[static_cast<size_t>(stamp[2 * row])];
  std::vector<int64_t> begins(out.received.size(), 0);
  std::exclusive_scan(out.received.begin(), out.received.end(), begins.begin(), int64_t{0});
  at::Tensor order = at::empty({arrived.size(0)}, at::kLong);
  int64_t* place = order.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < arrived.size(0); ++row)
    place[begins[static_cast<size_t>(stamp[2 * row])] + stamp[2 * row + 1]] = row;
  out.rows = arrived.narrow(1, kStampBytes, width).index_select(0, order);
  return out;
}

at::Tensor deliver(const at::Tensor& rows, PeerMemory& memory, const std::vector<int64_t>& sent,
                   std::vector<int64_t>& received, Purpose purpose) {
  RANKLAB_CHECK(rows.is_cpu() || rows.is_meta(), ErrorKind::kInvalidArgument, .where = "experts",
                .what = "rows for peers' memory are not in CPU memory",
                .want = "ranks that are threads, with tensors in the host's memory");
  const PurposeScope scope(purpose);
  const at::Tensor bytes = row_bytes(rows);
  int64_t begin = 0;
  for (int peer = 0; peer < memory.group().size(); ++peer) {
    const int64_t count = sent[static_cast<size_t>(peer)];
    if (count > 0) {
      at::Tensor put;
      {
        const NoCostScope free;  // not charged: a GPU kernel writes stamp and row directly to their destination
        put = stamped(bytes.narrow(0, begin, count), memory.group().group_rank);
      }
      memory.put(peer, put);
    }
    begin += count;
  }
  memory.finish();
  const Delivery delivery = memory.take();
  const CostScope cost("deliver_rows", 0, 2.0 * static_cast<double>(delivery.rows.nbytes()),
                       dtype_of(rows.scalar_type()));
  const Sorted sorted = by_source(delivery, bytes.size(1), memory.group().size());
  received = sorted.received;
  return sorted.rows.contiguous().view(rows.scalar_type()).view({sorted.rows.size(0), rows.size(1)});
}

struct Deliver : CustomFunction<Deliver> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& rows, PeerMemory& memory,
                            const std::vector<int64_t>& sent, std::vector<int64_t>* received, ExchangePurpose purpose) {
    // The memory must outlive the graph, which lives within one step.
    ctx->saved_data["memory"] = reinterpret_cast<int64_t>(&memory);
    ctx->saved_data["backward"] = static_cast<int64_t>(purpose.backward);
    const WireFormat& wire = purpose.wire;
    at::Tensor arrived = deliver(wire.packs() ? to_wire(rows, wire) : rows, memory, sent, *received, purpose.forward);
    if (wire.packs()) arrived = from_wire(arrived, wire, rows.size(1), rows.scalar_type());
    ctx->saved_data["received"] = *received;
    return arrived;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    auto& memory = *reinterpret_cast<PeerMemory*>(ctx->saved_data["memory"].toInt());
    std::vector<int64_t> back;
    const auto purpose = static_cast<Purpose>(ctx->saved_data["backward"].toInt());
    return {deliver(grads[0], memory, ctx->saved_data["received"].toIntVector(), back, purpose), {}, {}, {}, {}};
  }
};

// Does what exchange_rows does, but by writing into peers' memory instead of by a collective: each rank writes its
// rows, stamped with their origin, directly into the receivers' buffers and announces that it has finished; no counts
// are exchanged in advance. Rows arrive in any order and are sorted by (source, index), so that the result does not
// depend on timing. Cost: 16 more bytes per row, and one pass over the rows that arrived. rows [sum(sent), ...],
// ordered by receiver -> rows ordered by source, and within a source in its order. Sets `received` to the number of
// rows per source. Differentiable: gradients return the same way.
at::Tensor deliver_rows(const at::Tensor& rows, PeerMemory& memory, const std::vector<int64_t>& sent,
                        std::vector<int64_t>& received, ExchangePurpose purpose) {
  return Deliver::apply(rows, memory, sent, &received, purpose);
}

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
  std::unique_ptr<ExpertTrip> dispatch(const at::Tensor& tokens_TH, const Routing& routing,
                                       WorkBeside* /*beside*/) override {  // ranks write; nothing is in flight
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
