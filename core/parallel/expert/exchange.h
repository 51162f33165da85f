// Uneven collectives that carry tokens to experts and back, differentiable, with the purpose that their events tell
// (Event::purpose) each way. Ranks without rows take part in both directions: an empty expert must not leave its peers
// waiting in backward. All act on dim 0. Thread rule: its rank's thread; every member makes the same calls.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/parallel/expert/wire_rows.h"

namespace ranklab {

struct ExchangePurpose {
  Purpose forward = Purpose::kDispatch;
  Purpose backward = Purpose::kDispatchGrad;
  WireFormat wire = {};  // of the forward
};
inline const ExchangePurpose kCombineExchange{Purpose::kCombine, Purpose::kCombineGrad, {}};
inline ExchangePurpose dispatch_exchange(const WireFormat& wire) {
  return {Purpose::kDispatch, Purpose::kDispatchGrad, wire};
}

// Rows per group rank, sent and received (both empty: equal parts); backward sends the gradients the other way.
at::Tensor exchange_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& send_rows,
                         const std::vector<int64_t>& recv_rows, ExchangePurpose purpose);
// All members' rows, in group order; backward is the reduce_scatter.
at::Tensor gather_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& rows,
                       ExchangePurpose purpose);
// The sum over members of this rank's rows; backward is the all_gather.
at::Tensor reduce_rows(const at::Tensor& x, Communicator& group, const std::vector<int64_t>& rows,
                       ExchangePurpose purpose);

// counts [n] of every member [group][n]: one all_gather.
std::vector<std::vector<int64_t>> share_counts(const std::vector<int64_t>& counts, Communicator& group,
                                               const at::TensorOptions& options);

}  // namespace ranklab
