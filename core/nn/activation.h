// The MLP's nonlinearities: SwiGLU and GeGLU (Shazeer 2020, arXiv 2002.05202) on a fused [gate | up] projection, its
// bounded form of gpt-oss, and GELU and the square of ReLU without gates. Cost: one pass forward, one backward. Thread
// rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/spec/model_config.h"

namespace ranklab {

// gate_up [..., 2F] -> silu(gate) * up [..., F]
at::Tensor swiglu(const at::Tensor& gate_up);
// The gradient with respect to gate_up, given that of the output; for use inside autograd functions. REQUIRES:
// has_row_kernels(gate_up).
at::Tensor swiglu_grad(const at::Tensor& grad_out, const at::Tensor& gate_up);
// The gradient and a recomputed output, on a CPU in one pass: returns the gradient and overwrites grad_out with
// swiglu(gate_up). Charged as the two kernels that a GPU runs. REQUIRES: has_row_kernels(gate_up).
at::Tensor swiglu_grad_and_recompute(const at::Tensor& grad_out, const at::Tensor& gate_up);
// The same in plain ATen ops.
at::Tensor swiglu_reference(const at::Tensor& gate_up);
at::Tensor gelu_tanh(const at::Tensor& x);
at::Tensor gelu_erf(const at::Tensor& x);  // exact: x times the normal distribution's CDF
at::Tensor squared_relu(const at::Tensor& x);
// gate_up [..., 2F] -> (u + 1) g sigmoid(1.702 g) [..., F] of g = min(gate, 7) and u = up within -7 and 7, as gpt-oss
// has it (arXiv 2508.10925); computed in fp32 for 16 bits.
at::Tensor swiglu_oai(const at::Tensor& gate_up);
// gate_up [..., 2F] -> gelu_tanh(gate) * up [..., F] (GeGLU; Shazeer 2020)
at::Tensor geglu(const at::Tensor& gate_up);
// The activation function of an MLP; a gated one takes [..., 2F].
at::Tensor (*activation_function(ActivationKind kind))(const at::Tensor&);
// cap tanh(x / cap), soft-capping of scores and logits (Gemma 2, arXiv 2408.00118, section 2).
at::Tensor soft_capped(const at::Tensor& x, double cap);

// An activation's output with what recomputes it bit for bit: a linear layer that reads `out` saves `input`, which the
// activation saves for its own backward anyway, instead of `out`.
struct Activated {
  at::Tensor out;
  at::Tensor input = {};                               // detached
  at::Tensor (*compute)(const at::Tensor&) = nullptr;  // null: `out` is saved
};
Activated activate(at::Tensor (*compute)(const at::Tensor&), const at::Tensor& input);
// For swiglu of a device's rows that a host always recomputes: the virtual clock is charged for that, done or not.
Activated swiglu_charged_twice(const at::Tensor& gate_up);

}  // namespace ranklab
