// A differentiable transfer of rows that a rank posts, works beside, and then waits for; in backward, too: there are
// two nodes in the graph, of the post and of the wait, and those of the work lie between them. Thread rule: its rank's
// thread, or autograd's; the calls' communicators must outlive the graph, which lives within one step.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

#include "core/parallel/expert/exchange.h"

namespace ranklab {

// Start the transfer of rows, and that of the result's gradient.
struct TransferCalls {
  std::function<WorkPtr(const at::Tensor&rows)> there, back;
};

// RETURNS: the rows that arrived.
at::Tensor transfer_beside(const at::Tensor& rows, const TransferCalls& calls, const ExchangePurpose& purpose,
                           WorkBeside& beside);

}  // namespace ranklab
