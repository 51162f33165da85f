// Products that only LibTorch's CUDA half has kernels for, for the stand-in's GPUs, in plain operators of the host.
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/sim/aten.h"
#include "tests/cuda/stand_in/host_tensors.h"

namespace ranklab::stand_in {
namespace {

using at::Tensor;
using OptionalTensor = const std::optional<Tensor>&;
using OptionalType = std::optional<at::ScalarType>;

// What the kernel reads: 16 bytes at a time, along rows or columns.
void check_grouped(const Tensor& x) {
  constexpr int64_t kTogether = 16;
  const int64_t rows = x.stride(-2), cols = x.stride(-1), along = rows == 1 ? cols : rows;
  TORCH_CHECK(x.scalar_type() == at::kBFloat16, "grouped products are of bf16");
  TORCH_CHECK(rows == 1 ? cols >= x.size(-2) : cols == 1 && rows >= x.size(-1), "strides ", x.strides());
  TORCH_CHECK(along * 2 % kTogether == 0 && (x.dim() == 2 || x.stride(0) * 2 % kTogether == 0), "strides ",
              x.strides());
  TORCH_CHECK(reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kTogether == 0, "begins between 16 bytes");
}

// a [N, I], rows of experts one after another, times b [E, I, O]; or sums over each expert's columns of a [O, N] and
// rows of b [N, I]. The ends of rows are read when the kernel runs.
Tensor grouped_mm(const Tensor& a, const Tensor& b, OptionalTensor ends, OptionalTensor /*bias*/,
                  OptionalType /*type*/) {
  TORCH_CHECK(a.dim() == 2 && ends.has_value() && ends->scalar_type() == at::kInt, "the stand-in knows experts alone");
  check_grouped(a), check_grouped(b);
  const bool sums = b.dim() == 2;
  const Tensor out = sums ? at::empty({ends->size(0), a.size(0), b.size(1)}, a.options())
                          : at::empty({a.size(0), b.size(2)}, a.options());
  launch_on_host({a, b, *ends, out}, [sums](const std::vector<Tensor>& t) {
    int64_t begin = 0;
    for (int64_t expert = 0; expert < t[2].size(0); ++expert) {
      const int64_t end = t[2][expert].item<int>();
      if (sums)
        t[3][expert].copy_(t[0].slice(1, begin, end).mm(t[1].slice(0, begin, end)));
      else
        t[3].slice(0, begin, end).copy_(t[0].slice(0, begin, end).mm(t[1][expert]));
      begin = end;
    }
  });
  return out;
}

// Products of 16-bit matrices whose sums are wider.
Tensor wide_bmm(const Tensor& a, const Tensor& b, at::ScalarType type) {
  TORCH_CHECK(a.itemsize() == 2 && b.itemsize() == 2 && type == at::kFloat, "only 16-bit numbers are added in fp32");
  const Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options().dtype(type));
  launch_on_host({a, b, out},
                 [](const std::vector<Tensor>& t) { t[2].copy_(t[0].to(at::kFloat).bmm(t[1].to(at::kFloat))); });
  return out;
}

// Values of codes [m, k], each scale repeated for the rows and columns that share it.
Tensor dequantized(const Tensor& codes, const Tensor& scales) {
  const Tensor values = codes.to(at::kFloat);
  if (scales.numel() == 1) return values * scales.reshape(at::IntArrayRef{});
  const int64_t rows = (codes.size(0) + scales.size(0) - 1) / scales.size(0);
  const int64_t cols = (codes.size(1) + scales.size(1) - 1) / scales.size(1);
  const Tensor spread = scales.repeat_interleave(rows, 0).repeat_interleave(cols, 1);
  return values * spread.slice(0, 0, codes.size(0)).slice(1, 0, codes.size(1));
}

// The layouts and lengths that cuBLAS takes; scales of one number, of rows, or of 128 numbers along the rows that are
// summed over.
void check_scaled(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b) {
  constexpr int64_t kTogether = 16;
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "a [m, k] times b [k, n]");
  TORCH_CHECK(a.stride(1) == 1 && b.stride(0) == 1, "a is row-major and b column-major");
  TORCH_CHECK(a.size(1) % kTogether == 0 && b.size(1) % kTogether == 0, "lengths are multiples of 16");
  TORCH_CHECK(a.scalar_type() == at::kFloat8_e4m3fn || b.scalar_type() == at::kFloat8_e4m3fn, "E5M2 times E5M2");
  TORCH_CHECK(scale_a.scalar_type() == at::kFloat && scale_b.scalar_type() == at::kFloat, "scales are fp32");
  TORCH_CHECK((scale_a.numel() == 1) == (scale_b.numel() == 1), "both operands have scales of the same kind");
}

Tensor scaled_mm(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b, OptionalTensor bias,
                 OptionalTensor scale_result, OptionalType type, bool /*fast*/) {
  check_scaled(a, b, scale_a, scale_b);
  TORCH_CHECK(!bias.has_value() && !scale_result.has_value(), "the stand-in knows neither bias nor scaled results");
  const bool of_rows = scale_a.numel() > 1 && scale_a.size(1) == 1 && a.size(1) > 128;
  TORCH_CHECK(!of_rows || type == at::kBFloat16, "row-wise scales give bf16");
  const Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(type.value_or(a.scalar_type())));
  launch_on_host({a, b, scale_a, scale_b, out},
                 [](const std::vector<Tensor>& t) { t[4].copy_(dequantized(t[0], t[2]).mm(dequantized(t[1], t[3]))); });
  return out;
}

TORCH_LIBRARY_IMPL(aten, CUDA, products) {
  products.impl("_grouped_mm", TORCH_FN(grouped_mm));
  products.impl("bmm.dtype", TORCH_FN(wide_bmm));
  products.impl("_scaled_mm", TORCH_FN(scaled_mm));
}

}  // namespace
}  // namespace ranklab::stand_in
