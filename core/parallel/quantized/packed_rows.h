// Rows in the wire format of core/precision/scaled_matrix.h, packed and unpacked on their own device by tensor
// operators, so that the host does not wait for a GPU. The bytes are those of pack_matrix(), but for groups with
// non-finite numbers, which become NaN with any codes. Legend: N rows, C columns, W bytes of a packed row. Cost: one
// pass to round and a few over the codes; not charged to the virtual clock. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/precision/device_rounding.h"
#include "core/precision/tensor_precision.h"

namespace ranklab {

// rows [N, C] -> bytes [N, W]. REQUIRES, here and below: scales that are powers of two, of groups one row high.
at::Tensor packed_rows(const at::Tensor& rows_NC, const TensorPrecision& precision, const DeviceRounding& device);

// bytes [N, W] -> fp32 [N, columns].
at::Tensor unpacked_rows(const at::Tensor& bytes_NW, const TensorPrecision& precision, int64_t columns);

}  // namespace ranklab
