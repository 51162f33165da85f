// Quantized token dispatch (DeepSeek-V3, arXiv 2412.19437, section 3.3.3: FP8 dispatch, bf16 combine). A token is
// rounded once, by the rank to which it belongs, in the same way in every layout. Scales are powers of two, so the
// rounded token is exact in the tokens' type, and packing it for one or two hops loses nothing. Backward: the rounding
// passes gradients through unchanged, and they are sent in the tokens' type. Legend: N rows, W columns of a row; the
// first columns are the token, the others are sent unchanged. Cost: one pass to round; packing is part of the sending
// kernel. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/precision/tensor_precision.h"

namespace ranklab {

struct WireFormat {
  TensorPrecision precision = {};  // not quantized: rows are sent unchanged
  int64_t columns = 0;             // columns of the token
  bool packs() const { return precision.quantized(); }
};

// Rounds rows in their own type; gradients pass straight through. Returns the tensor itself if nothing is rounded.
// REQUIRES, for all functions: precisions satisfy check_recipe()'s conditions for `dispatch`.
at::Tensor round_rows(const at::Tensor& rows_NH, const TensorPrecision& precision);

// The bytes of rows [N, W] in memory order.
at::Tensor row_bytes(const at::Tensor& rows_NW);

// Converts rows to the wire format and back. REQUIRES: rows from round_rows(); format.packs().
at::Tensor to_wire(const at::Tensor& rows_NW, const WireFormat& format);
at::Tensor from_wire(const at::Tensor& bytes, const WireFormat& format, int64_t width, at::ScalarType type);

}  // namespace ranklab
