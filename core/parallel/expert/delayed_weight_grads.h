// Computes the weight gradients of experts while the gradients of their tokens are sent back (Megatron-Core's
// --delay-wgrad-compute): in backward, products of weights that lie between two tensors are queued (deferred_grads.h),
// and run() is called once the transfer is posted. In a backward whose weight gradients are a separate pass (zero
// bubble) they stay with that pass. Same products, same order: same bits. Memory: the queue holds the experts' inputs
// and output gradients until run(). Thread rule: its rank's thread, or autograd's.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "core/parallel/deferred_grads.h"

namespace ranklab {

class DelayedWeightGrads : public std::enable_shared_from_this<DelayedWeightGrads> {
 public:
  // The experts' inputs and outputs. REQUIRES: both require a gradient.
  void delay_between(const at::Tensor& rows_NH, const at::Tensor& outputs_NH);
  void run() { queue_.run(); }

 private:
  WeightGradQueue queue_;
  std::optional<DeferWeightGrads> defer_;
};

}  // namespace ranklab
