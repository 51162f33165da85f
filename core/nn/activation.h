// The MLP's nonlinearities: SwiGLU and GeGLU (Shazeer 2020, arXiv 2002.05202) on a fused [gate | up] projection,
// gpt-oss's bounded form of SwiGLU, and GELU and squared ReLU without gates. Cost: one pass forward, one backward.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/spec/model_config.h"

namespace ranklab {

// gate_up [..., 2F] -> silu(gate) * up [..., F]
at::Tensor swiglu(const at::Tensor& gate_up);
// The gradient with respect to gate_up, given that of the output. For use inside autograd functions. REQUIRES:
// has_row_kernels(gate_up).
at::Tensor swiglu_grad(const at::Tensor& grad_out, const at::Tensor& gate_up);
// The gradient and the recomputed output, in one pass on a CPU: returns the gradient and overwrites grad_out with
// swiglu(gate_up). The virtual clock is charged for the two kernels that a GPU runs. REQUIRES:
// has_row_kernels(gate_up).
at::Tensor swiglu_grad_and_recompute(const at::Tensor& grad_out, const at::Tensor& gate_up);
// The same in plain ATen ops.
at::Tensor swiglu_reference(const at::Tensor& gate_up);
at::Tensor gelu_tanh(const at::Tensor& x);
at::Tensor gelu_erf(const at::Tensor& x);  // exact: x times the normal distribution's CDF
at::Tensor squared_relu(const at::Tensor& x);
// gate_up [..., 2F] -> (u + 1) g sigmoid(1.702 g) [..., F], where g = min(gate, 7) and u is `up` clamped to [-7, 7], as
// in gpt-oss (arXiv 2508.10925). Computed in fp32 for 16-bit tensors.
at::Tensor swiglu_oai(const at::Tensor& gate_up);
// gate_up [..., 2F] -> gelu_tanh(gate) * up [..., F] (GeGLU; Shazeer 2020)
at::Tensor geglu(const at::Tensor& gate_up);
// The activation function of an MLP; a gated one takes [..., 2F].
at::Tensor (*activation_function(ActivationKind kind))(const at::Tensor&);
// cap tanh(x / cap), soft-capping of scores and logits (Gemma 2, arXiv 2408.00118, section 2).
at::Tensor soft_capped(const at::Tensor& x, double cap);

// An activation's output together with what recomputes it bit for bit. A linear layer that reads `out` saves `input`
// instead, which the activation saves for its own backward anyway.
struct Activated {
  at::Tensor out;
  at::Tensor input = {};                               // detached
  at::Tensor (*compute)(const at::Tensor&) = nullptr;  // null: `out` is saved
};
Activated activate(at::Tensor (*compute)(const at::Tensor&), const at::Tensor& input);
// For swiglu of rows on a device that a host would always recompute: the virtual clock is charged for the
// recomputation, whether it happens or not.
Activated swiglu_charged_twice(const at::Tensor& gate_up);

}  // namespace ranklab
