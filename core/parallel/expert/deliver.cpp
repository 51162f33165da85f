#include "core/parallel/expert/deliver.h"

#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/comm/purpose.h"
#include "core/nn/custom_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

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

}  // namespace

at::Tensor deliver_rows(const at::Tensor& rows, PeerMemory& memory, const std::vector<int64_t>& sent,
                        std::vector<int64_t>& received, ExchangePurpose purpose) {
  return Deliver::apply(rows, memory, sent, &received, purpose);
}

}  // namespace ranklab
