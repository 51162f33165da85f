// Differentiable collectives: the backward of each is its adjoint (Megatron-LM, Shoeybi et al. 2019, arXiv 1909.08053,
// section 3; sequence parallelism: Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2).
//
//                         forward           backward
//   copy_to_tp            identity          all_reduce
//   reduce_from_tp        all_reduce        identity
//   gather_from_sp        all_gather        reduce_scatter    (the consumer differs per rank: a sharded linear)
//   reduce_scatter_to_sp  reduce_scatter    all_gather
//
// The uneven collectives of expert dispatch are in expert/exchange.h. All act on dim 0. A group of one returns its
// input. Cost: one collective each way. Thread rule: its rank's thread; every member of the group runs forward and
// backward in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/comm/communicator.h"

namespace ranklab {

at::Tensor copy_to_tp(const at::Tensor& x, Communicator& tp);
at::Tensor reduce_from_tp(const at::Tensor& x, Communicator& tp);
at::Tensor gather_from_sp(const at::Tensor& x, Communicator& tp);
at::Tensor reduce_scatter_to_sp(const at::Tensor& x, Communicator& tp);

// This rank's rows of dim 0. REQUIRES: they divide evenly.
at::Tensor own_rows(const at::Tensor& x, const Communicator& group);

}  // namespace ranklab
