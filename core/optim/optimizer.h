// The interface between the runtime and optimizers. An update reads data.grad() of its parameters, which GradReducer
// has summed and clip_grad_norm has scaled. It works only on this rank's elements, so replicas stay bitwise equal if
// their gradients are. Thread rule: its rank's thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

// An optimizer's state for one parameter or for a piece of one (GradReducer::owned); tensors have the shape of its
// data.
struct OptimizerState {
  Parameter* parameter = nullptr;
  at::Tensor weight;  // the tensor that is updated: the data itself, or its master
  std::vector<std::pair<std::string, at::Tensor>> moments;  // by name: "exp_avg"
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(double lr) = 0;
  // The same with gradients multiplied by `factor`, in the precision in which the update is computed. RETURNS false if
  // not supported; then nothing has changed.
  virtual bool step_scaled(double /*lr*/, double /*factor*/) { return false; }
  // Whether step_scaled() costs no more than step(). REQUIRES: gradients are defined.
  virtual bool scales_at_once() const { return false; }
  // Frees the gradients (a later backward makes new ones).
  virtual void zero_grad() = 0;
  // For checkpoints, which read these tensors and write into them; tensors without a name here are not saved.
  // Parameters may come in any order.
  virtual std::vector<OptimizerState> states() const { return {}; }
  // Number of updates so far (the step of AdamW's bias correction).
  virtual int64_t updates() const { return 0; }
  // Call after a checkpoint has been loaded into states(): masters are copied into the parameters.
  virtual void restored(int64_t /*updates*/) {}
};

// AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101): decoupled weight decay on parameters with weight_decay set. One
// fused ATen call per step, or one per parameter if some tensor is stored in 16 bits (param_groups.h); on a device with
// kernels for it one pass over all tensors of any type (device_adam.h). Memory: two numbers per element.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  bool cpu_offload = false;  // masters and moments in host memory, where the update runs
  bool masters = true;       // keep fp32 masters of 16-bit parameters; false: update the parameters themselves
  // Types in which the moments are stored, rounded to nearest; unset: that in which the update is computed, fp32 or
  // fp64.
  std::optional<at::ScalarType> exp_avg_type = std::nullopt, exp_avg_sq_type = std::nullopt;
};
std::unique_ptr<Optimizer> make_adamw(std::vector<Parameter*> parameters, const AdamWOptions& options);

// SGD with momentum as in torch.optim.SGD: buffer = momentum * buffer + grad (first step: grad). Coupled decay.
struct SgdOptions {
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool cpu_offload = false;
  bool masters = true;
};
std::unique_ptr<Optimizer> make_sgd(std::vector<Parameter*> parameters, const SgdOptions& options);

}  // namespace ranklab
