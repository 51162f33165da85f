// Tokens that travel to their experts in few bits (DeepSeek-V3, arXiv 2412.19437, section 3.3.3: FP8 dispatch, bf16
// combine). A token is rounded once, by the rank it belongs to, in every layout alike; scales are powers of two, so
// that what was rounded is exact in the tokens' type, and packing it for a message or two loses nothing. Backward: the
// rounding passes gradients on, and they travel in the tokens' type. Legend: N rows, W columns of a row, of which the
// first are the token and the others travel as they are. Cost: one pass to round; packing is part of the sending
// kernel. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/precision/tensor_precision.h"

namespace ranklab {

struct WireFormat {
  TensorPrecision precision = {};  // not quantized: rows travel as they are
  int64_t columns = 0;             // of the token
  bool packs() const { return precision.quantized(); }
};

// REQUIRES of all precisions: check_recipe()'s of `dispatch`. Rounded, in its own type; gradients pass. The tensor
// itself where nothing is rounded.
at::Tensor round_rows(const at::Tensor& rows_NH, const TensorPrecision& precision);

// The bytes of rows [N, W] as they lie in memory.
at::Tensor row_bytes(const at::Tensor& rows_NW);

// Rows of bytes, and back. REQUIRES: what round_rows() gave; format.packs().
at::Tensor to_wire(const at::Tensor& rows_NW, const WireFormat& format);
at::Tensor from_wire(const at::Tensor& bytes, const WireFormat& format, int64_t width, at::ScalarType type);

}  // namespace ranklab
