// What exchange_rows does, by writing into peers' memory instead of meeting them (Remote Direct EP, github.com/Noumena-
// Network/nmoe): each rank puts its rows, with where they come from, straight into their receivers' buffers and says
// that it has finished; nobody is told counts in advance. Rows arrive in any order and are put into that of (source,
// index), so that no bit depends on timing. Cost: 16 bytes a row on top, and one pass over what arrived. Thread rule:
// its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/peer_memory.h"
#include "core/parallel/expert/exchange.h"

namespace ranklab {

// rows [sum(sent), ...] by receiver -> rows by source, in their order there. `received` gets their numbers.
// Differentiable: gradients go back the same way.
at::Tensor deliver_rows(const at::Tensor& rows, PeerMemory& memory, const std::vector<int64_t>& sent,
                        std::vector<int64_t>& received, ExchangePurpose purpose);

}  // namespace ranklab
