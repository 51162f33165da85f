// What the runtime asks of an optimizer. Each update reads data.grad() of its parameters, which GradReducer has summed
// and clip_grad_norm has scaled; it works on this rank's elements only, so replicas stay equal bit for bit when their
// gradients are. Thread rule: its rank's thread.
#pragma once
#include <memory>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(double lr) = 0;
  // Frees the gradients (a later backward makes new ones).
  virtual void zero_grad() = 0;
  // Tensors of the state by name ("exp_avg.layers.0..."), for checkpoints and tests. What is not named is not kept.
  virtual std::vector<std::pair<std::string, at::Tensor>> state() const { return {}; }
};

// AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101), decoupled weight decay on parameters with weight_decay set.
// One fused ATen call a step. Memory: two numbers an element.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};
std::unique_ptr<Optimizer> make_adamw(std::vector<Parameter*> parameters, const AdamWOptions& options);

// SGD with momentum as in torch.optim.SGD: buffer = momentum * buffer + grad (the first step: grad). Coupled decay.
struct SgdOptions {
  double momentum = 0.0;
  double weight_decay = 0.0;
};
std::unique_ptr<Optimizer> make_sgd(std::vector<Parameter*> parameters, const SgdOptions& options);

}  // namespace ranklab
