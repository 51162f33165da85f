// Queries that grow with the logarithm of their position: the softmax over many keys flattens, and larger scores
// compensate for that (Nakanishi 2025, arXiv 2501.19399; in steps of `floor` positions, as in Llama 4). Legend: S
// positions of the model, R rows, B sequences. Cost: one pass over the queries, and a copy of the columns that follow
// them (keys and values). Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

// [S]: 1 + scale ln(1 + floor((position + 1) / floor)).
at::Tensor query_temperatures(int64_t positions, double scale, int64_t floor, const at::TensorOptions& options);

// x [R, B, ...]: multiplies its first `columns` columns by the temperature at the rows' positions and leaves the other
// columns as they are. Positions are int64 [R], or [B, R] where they differ between sequences. Differentiable. With an
// undefined table, returns x unchanged.
at::Tensor with_temperature(const at::Tensor& x, int64_t columns, const at::Tensor& table_S,
                            const at::Tensor& positions);

}  // namespace ranklab
