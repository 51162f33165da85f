// Brings the ranks' pieces of some tensors to one rank. Cost: two all_gathers of what each rank has, in words, and a
// message from each rank that has some. Thread rule: collective over all ranks.
#pragma once
#include "core/comm/communicator.h"
#include "core/parity/parity_record.h"

namespace ranklab {

// RETURNS: all pieces, on the first rank that has some of phase kForward; elsewhere nothing. Of copies of weights the
// first rank's alone.
TensorPieces gather_pieces(const TensorPieces& mine, Communicator& world, c10::Device device);

}  // namespace ranklab
