// RMSNorm (Zhang and Sennrich 2019, arXiv 1910.07467) and LayerNorm (Ba et al. 2016), fused with the residual addition
// that precedes each norm of a pre-norm transformer: one pass over the row instead of an addition and four ATen ops.
// Charged as one kernel. Memory: saves the sum and one number per row for backward. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/parameter.h"
#include "core/spec/model_config.h"

namespace ranklab {

// Recomputes a norm's output in backward from tensors that are saved anyway, instead of saving it.
struct NormRecipe {
  at::Tensor sum, weight;
  at::Tensor inv_rms;  // undefined where the output is saved (LayerNorm, other devices, keeps_cheap_outputs())
  double weight_offset = 0;
  bool defined() const { return inv_rms.defined(); }
  at::Tensor normed() const;  // the same bits as the forward's
};

struct NormOutput {
  at::Tensor sum;     // x + branch (x itself without a branch): the residual stream
  at::Tensor normed;  // norm(sum) * weight (+ bias)
  NormRecipe recipe = {};
};

struct NormNumbers {
  double epsilon = 1e-5;
  double weight_offset = 0;  // added to the weight, which is then learned as the difference from this offset
};

// x, branch [..., H]; branch may be undefined. weight [H].
NormOutput add_rms_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, NormNumbers numbers);
// The same in plain ATen ops. The kernel is tested against it, and it serves other devices and dtypes.
NormOutput add_rms_norm_reference(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                  NormNumbers numbers);
// `bias`: undefined if there is none.
NormOutput add_layer_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                          const at::Tensor& bias, NormNumbers numbers);

class Norm {
 public:
  // With sequence parallelism the parameters' gradients must be summed over tp, since each rank normalizes only its own
  // tokens.
  Norm(const ModuleScope& scope, const ModuleSpec& spec, const ModelConfig& config, bool sequence_parallel);
  NormOutput operator()(const at::Tensor& x, const at::Tensor& branch = {}) const;

 private:
  NormKind kind_;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  NormNumbers numbers_;
};

}  // namespace ranklab
