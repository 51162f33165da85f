// Collects the pieces of some tensors from all ranks on one rank. Cost: two all_gathers of a description of each rank's
// pieces, and a message from each rank that has some. Thread rule: collective over all ranks.
#pragma once
#include "core/comm/communicator.h"
#include "core/parity/parity_record.h"

namespace ranklab {

// RETURNS: all pieces, on the first rank that has a piece of phase kForward; nothing on the other ranks. If several
// ranks hold copies of a weight, only the first rank's copy is sent.
TensorPieces gather_pieces(const TensorPieces& mine, Communicator& world, c10::Device device);

}  // namespace ranklab
