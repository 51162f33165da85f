// The GEMM of linear layers, computed by the library that was chosen for this process. LibTorch ships Intel MKL and
// oneDNN for fp32 on CPUs, and neither is always faster; its own switch (float32_matmul_precision) also reroutes the
// tiny GEMMs inside attention, where oneDNN's set-up costs more than the GEMM, and allows bf16 on some CPUs. So only
// the large GEMMs call oneDNN, in strict fp32, and everything else stays as it is. fp16 on a CPU is widened, multiplied
// in fp32 and rounded once, as tensor cores do. Every other device and dtype uses at::mm. Cost: the virtual clock is
// charged for one GEMM, whichever library computes it. Thread rule: choose before ranks start; mm from any thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace ranklab {

enum class GemmLibrary { kMkl, kOneDnn };

// Whether this LibTorch's oneDNN works on this processor; some builds need AVX-512. Cost: a small GEMM on the first
// call.
bool onednn_available();
std::string why_no_onednn();  // "this LibTorch has no oneDNN"; empty: it is available
// REQUIRES: onednn_available() for kOneDnn. Process-wide; kMkl initially.
void use_gemm(GemmLibrary library);
GemmLibrary gemm_in_use();

// a [m, k] b [k, n] -> [m, n]. REQUIRES: called where autograd does not record (inside autograd functions, or under
// NoGradGuard).
at::Tensor gemm(const at::Tensor& a, const at::Tensor& b);
// The transpose of a b: [n, m], dense. The virtual clock is charged on any device for what a CPU does, which is the
// product and then a copy; other devices compute b^T a^T. For a CPU's BLAS, which is faster with the smaller side
// first.
at::Tensor turned_gemm(const at::Tensor& a, const at::Tensor& b);
// The same, written into an existing matrix or added to it (16-bit results are rounded once more by the addition).
// REQUIRES: out [m, n] is contiguous.
void gemm_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
void gemm_add(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
// gemm_into() for groups of rows that are apart in memory: out [groups, m, n], a [groups, m, k], b [k, n]. A GPU
// multiplies all at once (cuBLAS's strided batches). REQUIRES: each group is contiguous.
void gemm_groups_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

}  // namespace ranklab
