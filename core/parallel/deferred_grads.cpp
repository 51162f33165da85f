#include "core/parallel/deferred_grads.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

thread_local WeightGradQueue* queue_in_force = nullptr;

}  // namespace

void WeightGradQueue::push(std::function<void()> action) {
  push({}, [action = std::move(action)] {
    action();
    return std::vector<at::Tensor>();
  });
}

void WeightGradQueue::push(const at::Tensor& leaf, std::function<at::Tensor()> product) {
  push(std::vector{leaf}, [product = std::move(product)] { return std::vector{product()}; });
}

void WeightGradQueue::push(std::vector<at::Tensor> leaves, std::function<std::vector<at::Tensor>()> product) {
  products_.push_back({std::move(leaves), std::move(product)});
}

void WeightGradQueue::run() {
  const at::NoGradGuard no_grad;
  struct Sum {
    int missing = 0;
    at::Tensor value;
  };
  std::map<const void*, Sum> sums;
  for (const Product& product : products_)
    for (const at::Tensor& leaf : product.leaves) ++sums[leaf.unsafeGetTensorImpl()].missing;
  for (Product& product : products_) {
    std::vector<at::Tensor> grads = std::exchange(product.gradients, nullptr)();
    for (size_t i = 0; i < product.leaves.size(); ++i) {
      at::Tensor grad = std::move(grads[i]);
      Sum& sum = sums[product.leaves[i].unsafeGetTensorImpl()];
      sum.value = sum.value.defined() ? sum.value + grad : std::move(grad);
      grad.reset();
      if (--sum.missing == 0) accumulate_grad(product.leaves[i], std::move(sum.value));
    }
  }
  products_.clear();
}

DeferWeightGrads::DeferWeightGrads(WeightGradQueue& queue) : previous_(std::exchange(queue_in_force, &queue)) {}
DeferWeightGrads::~DeferWeightGrads() { queue_in_force = previous_; }

WeightGradQueue* deferred_weight_grads() { return queue_in_force; }

void hand_over_grad(const at::Tensor& leaf, const at::Tensor& grad) {
  RANKLAB_CHECK(!leaf.grad().defined(), ErrorKind::kInternal, .where = "hand_over_grad",
                .what = "the leaf has a gradient already", .got = "a second one", .want = "one in each pass",
                .fix = "take leaf.grad() before the next pass");
  leaf.mutable_grad() = grad;
  if (const auto& hook = torch::autograd::impl::post_acc_grad_hooks(leaf)) (*hook)(leaf);
}

void accumulate_grad(const at::Tensor& leaf, at::Tensor grad) {
  const auto accumulator = torch::autograd::impl::grad_accumulator(leaf);
  torch::autograd::variable_list grads(1);
  grads[0] = std::move(grad);
  (*accumulator)(std::move(grads));
}

}  // namespace ranklab
