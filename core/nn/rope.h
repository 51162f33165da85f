// Rotary position embedding (Su et al. 2021, arXiv 2104.09864) in the halves convention of GPT-NeoX and Llama: the pair
// (x[i], x[i + D/2]) turns by position * theta^(-2i/D). Tables are made once per model, in fp64, then rounded.
// Thread rule: tables are immutable.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

struct RopeTable {
  at::Tensor cos_SD;  // [S, D/2]; undefined: no rotation
  at::Tensor sin_SD;
  bool defined() const { return cos_SD.defined(); }
};

// REQUIRES: head_dim even.
RopeTable make_rope_table(int64_t seq_length, int64_t head_dim, double theta, const at::TensorOptions& options);
// x [..., S, D], S at most the table's length: rotated by position 0 .. S-1. Plain ATen ops.
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table);

}  // namespace ranklab
