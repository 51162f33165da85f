// Does what exchange_rows does, but by writing into peers' memory instead of by a collective (Remote Direct EP,
// github.com/Noumena-Network/nmoe): each rank writes its rows, stamped with their origin, directly into the receivers'
// buffers and announces that it has finished; no counts are exchanged in advance. Rows arrive in any order and are
// sorted by (source, index), so that the result does not depend on timing. Cost: 16 more bytes per row, and one pass
// over the rows that arrived. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/peer_memory.h"
#include "core/parallel/expert/exchange.h"

namespace ranklab {

// rows [sum(sent), ...], ordered by receiver -> rows ordered by source, and within a source in its order. Sets
// `received` to the number of rows per source. Differentiable: gradients return the same way.
at::Tensor deliver_rows(const at::Tensor& rows, PeerMemory& memory, const std::vector<int64_t>& sent,
                        std::vector<int64_t>& received, ExchangePurpose purpose);

}  // namespace ranklab
