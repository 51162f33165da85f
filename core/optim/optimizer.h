// The interface between the runtime and optimizers. An update reads data.grad() of its parameters, which GradReducer
// has summed and scale_grads has scaled. It works only on this rank's elements, so replicas stay bitwise equal if
// their gradients are. An optimizer that needs whole matrices is given a function that maps matrices of which several
// ranks hold pieces. Thread rule: its rank's thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/matrix_parts.h"
#include "core/nn/parameter.h"

namespace ranklab {

// An optimizer's state for one parameter, or for a piece of a parameter (GradReducer::owned); the tensors have the
// shape of the parameter's or piece's data.
struct OptimizerState {
  Parameter* parameter = nullptr;
  at::Tensor weight;  // the tensor that is updated: the data itself, or its master
  std::vector<std::pair<std::string, at::Tensor>> moments;  // by name: "exp_avg"
};

// Applies `map` to matrices of which this rank holds pieces (GradReducer::owned), or the whole. `values` [pieces] have
// the shapes of the pieces' data and are replaced by the same pieces of the mapped matrices. Collective.
using MapMatrices =
    std::function<void(const std::vector<Parameter*>& pieces, std::vector<at::Tensor>& values, const MatrixMap& map)>;

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(double lr) = 0;
  // Sets the weight decay of all later updates, in place of the one in the options.
  virtual void set_weight_decay(double /*weight_decay*/) {}
  // Like step(), with gradients multiplied by `factor` in the precision in which the update is computed. RETURNS false
  // if not supported; then nothing has changed.
  virtual bool step_scaled(double /*lr*/, double /*factor*/) { return false; }
  // Whether step_scaled() is supported and costs no more than step(). REQUIRES: gradients are defined.
  virtual bool scales_in_update() const { return false; }
  // How to map hidden matrices; until this is called each parameter is treated as a whole matrix.
  virtual void map_matrices_with(MapMatrices /*map*/) {}
  // Frees the gradients (a later backward creates new ones).
  virtual void zero_grad() = 0;
  // For checkpoints, which read these tensors and write into them; tensors that are not listed here are not saved.
  // Parameters may come in any order.
  virtual std::vector<OptimizerState> states() const { return {}; }
  // Number of updates so far (the step number in AdamW's bias correction).
  virtual int64_t updates() const { return 0; }
  // Call after a checkpoint has been loaded into states(): masters are copied into the parameters.
  virtual void restored(int64_t /*updates*/) {}
};

// AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101): decoupled weight decay on parameters with weight_decay set. One
// fused ATen call per step, or one per parameter if some tensor is stored in 16 bits (param_groups.h); on a device with
// an AdamW kernel, one pass over all tensors of any type (adamw.cpp). Memory: two numbers per element.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  bool cpu_offload = false;  // masters and moments in host memory, where the update runs
  bool masters = true;       // keep fp32 masters of 16-bit parameters; false: update the parameters themselves
  // Types in which the moments are stored, rounded to nearest; if unset, the type in which the update is computed, fp32
  // or fp64.
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

// Muon for hidden matrices (Parameter::hidden_matrix), like torch.optim.Muon with adjust_lr_fn "match_rms_adamw" (Liu
// et al. 2025, arXiv 2502.16982): the momentum of an m x n matrix is orthogonalized (newton_schulz.h), the parts of a
// fused matrix each on their own (matrix_parts.h), and scaled by 0.2 sqrt(max(m, n)). Decoupled weight decay. All other
// parameters use AdamW with the same learning rate. Memory: one number per element of a hidden matrix, two per element
// of the others; during an update one more per element of a hidden matrix, and what mapping the matrix takes.
struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t ns_steps = 5;
  // type in which the iteration computes; unset: that of the update
  std::optional<at::ScalarType> ns_type = std::nullopt;
  AdamWOptions others = {};  // its weight decay, offloading and types also apply to the matrices
};
std::unique_ptr<Optimizer> make_muon(std::vector<Parameter*> parameters, const MuonOptions& options);

// Lion (Chen et al. 2023, arXiv 2302.06675): w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w), then
// m = beta2 m + (1 - beta2) g. Decoupled weight decay. Its learning rate is 3 to 10 times smaller than AdamW's. Memory:
// one number per element.
struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;
  bool cpu_offload = false;
  bool masters = true;
  std::optional<at::ScalarType> exp_avg_type = std::nullopt;
};
std::unique_ptr<Optimizer> make_lion(std::vector<Parameter*> parameters, const LionOptions& options);

}  // namespace ranklab
