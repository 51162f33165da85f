// The matrix product of the linear layers, by the library that was chosen for this process. LibTorch carries Intel MKL
// and oneDNN for fp32 on CPUs, and neither is always faster; its own switch (float32_matmul_precision) also reroutes
// the tiny products inside attention, where oneDNN's set-up costs more than the product, and allows bf16 on some CPUs.
// So the large products call oneDNN here, in strict fp32, and everything else stays as it is. fp16 on a CPU is widened,
// multiplied in fp32 and rounded once, as tensor cores do it. Every other device and dtype is at::mm. Cost: one
// product; charged to the virtual clock as such. Thread rule: choose before ranks start; mm from any thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace ranklab {

enum class GemmLibrary { kMkl, kOneDnn };

// Whether this LibTorch multiplies with oneDNN on this processor; some do on those with AVX-512 alone. Cost: a small
// product, the first time.
bool onednn_available();
std::string why_no_onednn();  // "this LibTorch has no oneDNN"; empty: it is available
// REQUIRES: onednn_available() for kOneDnn. Process-wide; kMkl at the start.
void use_gemm(GemmLibrary library);
GemmLibrary gemm_in_use();

// a [m, k] b [k, n] -> [m, n]. REQUIRES: called where autograd does not record (inside autograd functions, or under
// NoGradGuard).
at::Tensor gemm(const at::Tensor& a, const at::Tensor& b);
// The same into a matrix that is there already, or added to it (which 16 bits would round once more). REQUIRES: out
// [m, n] is contiguous.
void gemm_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
void gemm_add(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

}  // namespace ranklab
