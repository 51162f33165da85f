// The differentiable uneven collectives of dispatch and combine; their events carry a purpose (Event::purpose) in each
// direction. Ranks without rows still take part in both directions, because otherwise their peers would hang in
// backward. All act on dim 0. Thread rule: its rank's thread; every member makes the same calls.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/parallel/expert/wire_rows.h"
#include "core/parallel/expert/work_beside.h"

namespace ranklab {

struct ExchangePurpose {
  Purpose forward = Purpose::kDispatch;
  Purpose backward = Purpose::kDispatchGrad;
  WireFormat wire = {};  // of the forward; backward is never packed
};
inline const ExchangePurpose kCombineExchange{Purpose::kCombine, Purpose::kCombineGrad, {}};
inline ExchangePurpose dispatch_exchange(const WireFormat& wire) {
  return {Purpose::kDispatch, Purpose::kDispatchGrad, wire};
}

// `beside` (null: none): its forward work is done, unless it already is, while the rows are on their way, and that
// work's gradients are computed while the gradients of the rows are; then its backward work is done. Pieces that are
// interleaved (interleave.h) have better to do in forward.

// An all-to-all of rows, with the numbers of rows sent to and received from each group rank (both empty: equal parts);
// backward sends the gradients the other way.
at::Tensor exchange_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& send_rows,
                         const std::vector<int64_t>& recv_rows, ExchangePurpose purpose, WorkBeside* beside = nullptr);
// All members' rows, in group order; backward is the reduce_scatter.
at::Tensor gather_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& rows,
                       ExchangePurpose purpose, WorkBeside* beside = nullptr);
// The sum over members of this rank's rows; backward is the all_gather.
at::Tensor reduce_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& rows,
                       ExchangePurpose purpose);

// All-gathers counts [n] -> [group][n].
std::vector<std::vector<int64_t>> share_counts(const std::vector<int64_t>& counts, Communicator& group,
                                               const at::TensorOptions& options);
// The same for counts that are on the group's device, for which the host waits; empty for meta tensors, whose values
// are unknown.
std::vector<std::vector<int64_t>> share_counts(const at::Tensor& counts, Communicator& group);

}  // namespace ranklab
