// The backward of a linear layer in two halves, for schedules that fill pipeline bubbles with weight gradients
// (zero bubble: Qi et al. 2023, arXiv 2401.10241): while a DeferWeightGrads lives, its backward returns the gradient of
// the input only (B) and queues the product for the weight; WeightGradQueue::run() does these products later (W).
// What is cheap or needs no product (norms, the token embedding) stays with B. Memory: the queue holds the layers'
// inputs and output gradients until it has run, about 1.4 times what a layer of the transformer keeps between F and B.
// Thread rule: its rank's thread; the queue in force is per thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace ranklab {

class WeightGradQueue {
 public:
  // Accumulates its gradients itself.
  void push(std::function<void()> product);
  // The gradient of `leaf`. A weight that the model uses several times gets the sum of its gradients once, as from
  // autograd.
  void push(const at::Tensor& leaf, std::function<at::Tensor()> product);
  // In the order of the backward; each product is freed when it is done. Tensor-parallel peers run theirs together.
  void run();
  bool empty() const { return products_.empty(); }

 private:
  struct Product {
    at::Tensor leaf;  // undefined: of the first kind
    std::function<at::Tensor()> gradient;
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

// The queue in force on this thread, or null.
WeightGradQueue* deferred_weight_grads();

// Accumulates into leaf.grad() as autograd does at the end of a backward, hooks included. A gradient that nobody else
// holds is kept as it is, not copied.
void accumulate_grad(const at::Tensor& leaf, at::Tensor grad);

}  // namespace ranklab
