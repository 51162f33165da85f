// The MLP's nonlinearities: SwiGLU (Shazeer 2020, arXiv 2002.05202) on a fused [gate | up] projection, and GELU in the
// tanh form of GPT-2. Cost: one pass forward, one backward. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

// gate_up [..., 2F] -> silu(gate) * up [..., F]
at::Tensor swiglu(const at::Tensor& gate_up);
// The same in plain ATen ops.
at::Tensor swiglu_reference(const at::Tensor& gate_up);
at::Tensor gelu_tanh(const at::Tensor& x);

}  // namespace ranklab
