// Splits the backward of a linear layer, for schedules that fill pipeline bubbles with weight gradients (zero bubble:
// Qi et al. 2023, arXiv 2401.10241). While a DeferWeightGrads lives, backward computes only the input's gradient (B)
// and queues the product for the weight; WeightGradQueue::run() runs these products later (W). Gradients that are cheap
// or need no matrix product (norms, the token embedding) stay in B. Memory: the queue holds the layers' inputs and
// output gradients until it has run, which is about 1.4 times what a transformer layer keeps between F and B. Thread
// rule: its rank's thread; the active queue is thread-local.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace ranklab {

class WeightGradQueue {
 public:
  // Queues an action that makes no gradients.
  void push(std::function<void()> action);
  // Queues a product that returns the gradient of `leaf`. A weight that the model uses several times gets the sum of
  // its gradients in one accumulation, as from autograd.
  void push(const at::Tensor& leaf, std::function<at::Tensor()> product);
  // The same for a product that returns the gradients of several leaves, in their order.
  void push(std::vector<at::Tensor> leaves, std::function<std::vector<at::Tensor>()> product);
  // Runs the products in the order of the backward and frees each one when it is done. Collective over tensor-parallel
  // ranks.
  void run();
  bool empty() const { return products_.empty(); }

 private:
  struct Product {
    std::vector<at::Tensor> leaves;
    std::function<std::vector<at::Tensor>()> gradients;
  };
  std::vector<Product> products_;
};

class DeferWeightGrads {
 public:
  explicit DeferWeightGrads(WeightGradQueue& queue);
  ~DeferWeightGrads();
  DeferWeightGrads(const DeferWeightGrads&) = delete;
  DeferWeightGrads& operator=(const DeferWeightGrads&) = delete;

 private:
  WeightGradQueue* previous_;
};

// The queue that is active on this thread, or null.
WeightGradQueue* deferred_weight_grads();

// Accumulates into leaf.grad() as autograd does at the end of a backward, including hooks. A gradient to which nothing
// else refers is stored without a copy.
void accumulate_grad(const at::Tensor& leaf, at::Tensor grad);
// The same for a leaf without a gradient: stores `grad` itself, without a copy, even if other references to it exist.
void hand_over_grad(const at::Tensor& leaf, const at::Tensor& grad);

}  // namespace ranklab
