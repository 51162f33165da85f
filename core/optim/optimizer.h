// What the runtime asks of an optimizer. Each update reads data.grad() of its parameters, which GradReducer has summed
// and clip_grad_norm has scaled; it works on this rank's elements only, so replicas stay equal bit for bit when their
// gradients are. Thread rule: its rank's thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

// What an optimizer keeps of one parameter, or of a piece of one (GradReducer::owned); tensors in the shape of its
// data.
struct OptimizerState {
  Parameter* parameter = nullptr;
  at::Tensor weight;                                        // what it updates: the data itself, or a master of it
  std::vector<std::pair<std::string, at::Tensor>> moments;  // by name: "exp_avg"
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(double lr) = 0;
  // The same with gradients multiplied by `factor`, in the precision in which the update is computed. False: it cannot,
  // and has done nothing.
  virtual bool step_scaled(double /*lr*/, double /*factor*/) { return false; }
  // Whether step_scaled() costs no more than step(). The gradients must be there.
  virtual bool scales_at_once() const { return false; }
  // Frees the gradients (a later backward makes new ones).
  virtual void zero_grad() = 0;
  // For checkpoints, which read these tensors and write into them: what is not named is not kept. The order of the
  // parameters is free.
  virtual std::vector<OptimizerState> states() const { return {}; }
  // Updates done so far (the step of AdamW's bias correction).
  virtual int64_t updates() const { return 0; }
  // After a checkpoint has been written into states(): weights become the parameters' data where they are masters.
  virtual void restored(int64_t /*updates*/) {}
};

// AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101), decoupled weight decay on parameters with weight_decay set.
// One fused ATen call a step, or one a parameter where something is kept in 16 bits (param_groups.h); on a device with
// kernels for it one pass over all that is kept, whatever its types (device_adam.h). Memory: two numbers an element.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  bool cpu_offload = false;  // masters and moments in the host's memory, where the update runs
  bool masters = true;       // of parameters in 16 bits, in fp32; false: these are updated themselves
  // In which moments are kept, rounded to nearest; unset: in which the update is computed, fp32 or fp64.
  std::optional<at::ScalarType> exp_avg_type = std::nullopt, exp_avg_sq_type = std::nullopt;
};
std::unique_ptr<Optimizer> make_adamw(std::vector<Parameter*> parameters, const AdamWOptions& options);

// SGD with momentum as in torch.optim.SGD: buffer = momentum * buffer + grad (the first step: grad). Coupled decay.
struct SgdOptions {
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool cpu_offload = false;
  bool masters = true;
};
std::unique_ptr<Optimizer> make_sgd(std::vector<Parameter*> parameters, const SgdOptions& options);

}  // namespace ranklab
