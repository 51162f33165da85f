// The recurrence from chunk to chunk of a state space (state_space.h): the state passes through a sequence's chunks one
// after another,
//   M_n+1 = decay_n M_n + added_n
// Cost: one pass over the states in each direction. Memory: M of every chunk. Legend: H heads of all sequences, N
// chunks, states of D elements. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

// added [H, N, D], decay [H, N, 1]. state [H, D] is the state before the first chunk, and on return the state after the
// last one. Returns the state before each chunk [H, N, D]. No gradient flows to the first state.
at::Tensor state_scan(const at::Tensor& added, const at::Tensor& decay, at::Tensor& state);

}  // namespace ranklab
