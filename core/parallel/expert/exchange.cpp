#include "core/parallel/expert/exchange.h"

#include <algorithm>
#include <numeric>

#include "core/base/injected_bug.h"
#include "core/comm/purpose.h"
#include "core/nn/custom_function.h"
#include "core/parallel/expert/host_numbers.h"
#include "core/parallel/expert/transfer_beside.h"
#include "core/parallel/interleave.h"
#include "core/parallel/saved_group.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// The communicator must outlive the graph, which lives within one step.
void keep(AutogradContext* ctx, Communicator& group, ExchangePurpose purpose) {
  save_group(ctx, group);
  ctx->saved_data["backward"] = static_cast<int64_t>(purpose.backward);
}
Purpose backward_purpose(AutogradContext* ctx) { return static_cast<Purpose>(ctx->saved_data["backward"].toInt()); }

// Runs a blocking collective, or, if interleaved, an asynchronous one, so that the other piece runs while it waits
// (interleave.h).
template <typename Blocking, typename Posting>
at::Tensor carried(Purpose purpose, const Blocking& blocking, const Posting& posting) {
  WorkPtr work;
  {
    const PurposeScope scope(purpose);
    if (!is_interleaved()) return blocking();
    work = posting();
  }
  return await_in_turns(work);
}

at::Tensor all_to_all(Communicator& group, const at::Tensor& x, const std::vector<int64_t>& send_rows,
                      const std::vector<int64_t>& recv_rows, Purpose purpose) {
  return carried(
      purpose, [&] { return group.all_to_all(x, send_rows, recv_rows); },
      [&] { return group.all_to_all_async(x, send_rows, recv_rows); });
}
at::Tensor all_gather(Communicator& group, const at::Tensor& x, const std::vector<int64_t>& rows, Purpose purpose) {
  return carried(
      purpose, [&] { return group.all_gather(x, rows); }, [&] { return group.all_gather_async(x, rows); });
}
at::Tensor reduce_scatter(Communicator& group, const at::Tensor& x, const std::vector<int64_t>& rows, Purpose purpose) {
  return carried(
      purpose, [&] { return group.reduce_scatter(x, ReduceOp::kSum, rows); },
      [&] { return group.reduce_scatter_async(x, ReduceOp::kSum, rows); });
}

// Runs a call that sends rows, packed in the wire format if it has one.
template <typename Call>
at::Tensor packed(const at::Tensor& rows, const WireFormat& wire, const Call& call) {
  if (!wire.packs()) return call(rows);
  return from_wire(call(to_wire(rows, wire)), wire, rows.size(1), rows.scalar_type());
}

struct Exchange : CustomFunction<Exchange> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, Communicator& group,
                            const std::vector<int64_t>& send_rows, const std::vector<int64_t>& recv_rows,
                            ExchangePurpose purpose) {
    keep(ctx, group, purpose);
    ctx->saved_data["send"] = send_rows;
    ctx->saved_data["recv"] = recv_rows;
    return packed(x, purpose.wire, [&](const at::Tensor& rows) {
      return all_to_all(group, rows, send_rows, recv_rows, purpose.forward);
    });
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    auto grad = all_to_all(saved_group(ctx), grads[0], ctx->saved_data["recv"].toIntVector(),
                           ctx->saved_data["send"].toIntVector(), backward_purpose(ctx));
    return {grad, {}, {}, {}, {}};
  }
};

// Wrong on purpose as the gradient of gathered rows, to which every rank contributes
// (InjectedBug::kGatherBackwardSlices).
at::Tensor own_part(const at::Tensor& all, const Communicator& group, const std::vector<int64_t>& rows) {
  const auto own = rows.begin() + group.rank();
  return all.narrow(0, std::accumulate(rows.begin(), own, int64_t{0}), *own).contiguous();
}

// all_gather and reduce_scatter are each other's backward.
template <auto kThere, auto kBack>
struct RowsOfAll : CustomFunction<RowsOfAll<kThere, kBack>> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, Communicator& group,
                            const std::vector<int64_t>& rows, ExchangePurpose purpose) {
    keep(ctx, group, purpose);
    ctx->saved_data["rows"] = rows;
    return packed(x, purpose.wire, [&](const at::Tensor& sent) { return kThere(group, sent, rows, purpose.forward); });
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const std::vector<int64_t> rows = ctx->saved_data["rows"].toIntVector();
    if (injected(InjectedBug::kGatherBackwardSlices) && kThere == &all_gather)
      return {own_part(grads[0], saved_group(ctx), rows), {}, {}, {}};
    return {kBack(saved_group(ctx), grads[0], rows, backward_purpose(ctx)), {}, {}, {}};
  }
};
using Gather = RowsOfAll<&all_gather, &reduce_scatter>;
using Reduce = RowsOfAll<&reduce_scatter, &all_gather>;

bool overlaps(const WorkBeside* beside) {
  return beside != nullptr && (beside->has_backward() || (beside->has_forward() && !is_interleaved()));
}

}  // namespace

at::Tensor exchange_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& send_rows,
                         const std::vector<int64_t>& recv_rows, ExchangePurpose purpose, WorkBeside* beside) {
  if (group.size() == 1) return x;
  if (!overlaps(beside)) return Exchange::apply(x, group, send_rows, recv_rows, purpose);
  const auto post = [&group](const std::vector<int64_t>& sent, const std::vector<int64_t>& received) {
    return [&group, sent, received](const at::Tensor& rows) { return group.all_to_all_async(rows, sent, received); };
  };
  return transfer_beside(x, {.there = post(send_rows, recv_rows), .back = post(recv_rows, send_rows)}, purpose,
                         *beside);
}

at::Tensor gather_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& rows,
                       ExchangePurpose purpose, WorkBeside* beside) {
  if (group.size() == 1) return x;
  if (!overlaps(beside) || injected(InjectedBug::kGatherBackwardSlices)) return Gather::apply(x, group, rows, purpose);
  const TransferCalls calls{
      .there = [&group, rows](const at::Tensor& sent) { return group.all_gather_async(sent, rows); },
      .back = [&group, rows](const at::Tensor& g) { return group.reduce_scatter_async(g, ReduceOp::kSum, rows); }};
  return transfer_beside(x, calls, purpose, *beside);
}

at::Tensor reduce_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& rows,
                       ExchangePurpose purpose) {
  return group.size() == 1 ? x : Reduce::apply(x, group, rows, purpose);
}

std::vector<std::vector<int64_t>> share_counts(const at::Tensor& counts, Communicator& group) {
  const NoCostScope free;  // copies of a few numbers are not charged
  const PurposeScope scope(Purpose::kRouting);
  const int64_t width = counts.size(0);
  // Does not switch to an interleaved piece: this rank posts the tokens next, and so short a switch would hide nothing
  // of the other piece's transfer.
  const at::Tensor gathered = group.all_gather(counts.view({1, width}));
  if (gathered.is_meta()) return {};
  const at::Tensor all = gathered.to(at::kCPU).contiguous();
  std::vector<std::vector<int64_t>> out;
  for (int rank = 0; rank < group.size(); ++rank) {
    const int64_t* row = all.const_data_ptr<int64_t>() + rank * width;
    out.emplace_back(row, row + width);
  }
  return out;
}

std::vector<std::vector<int64_t>> share_counts(const std::vector<int64_t>& counts, Communicator& group,
                                               const at::TensorOptions& options) {
  if (group.size() == 1) return {counts};
  const NoCostScope free;
  const at::Tensor mine = host_numbers(static_cast<int64_t>(counts.size()), at::kLong, options.device());
  std::copy(counts.begin(), counts.end(), mine.mutable_data_ptr<int64_t>());
  auto all = share_counts(sent_to(options.device(), mine), group);
  if (options.device().is_meta()) all.assign(static_cast<size_t>(group.size()), counts);  // all ranks have the same
  return all;
}

}  // namespace ranklab
