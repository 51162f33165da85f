#include "core/parallel/deferred_grads.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace ranklab {
namespace {

thread_local WeightGradQueue* queue_in_force = nullptr;

}  // namespace

void WeightGradQueue::run() {
  const at::NoGradGuard no_grad;
  for (auto& product : products_) std::exchange(product, nullptr)();
  products_.clear();
}

DeferWeightGrads::DeferWeightGrads(WeightGradQueue& queue) : previous_(std::exchange(queue_in_force, &queue)) {}
DeferWeightGrads::~DeferWeightGrads() { queue_in_force = previous_; }

WeightGradQueue* deferred_weight_grads() { return queue_in_force; }

void accumulate_grad(const at::Tensor& leaf, at::Tensor grad) {
  const auto accumulator = torch::autograd::impl::grad_accumulator(leaf);
  torch::autograd::variable_list grads(1);
  grads[0] = std::move(grad);
  (*accumulator)(std::move(grads));
}

}  // namespace ranklab
