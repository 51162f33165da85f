// Newton-Schulz iteration with a quintic polynomial: for a matrix U S V^T it approximates U V^T, the orthogonal matrix
// nearest to it. With these coefficients singular values land between about 0.7 and 1.2 after five steps, which is
// enough for Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon; Liu et al. 2025, arXiv 2502.16982,
// section 2.1; torch.optim.Muon). Cost: for m x n with m <= n, 4 m^2 n + 2 m^3 FLOPs per step. Memory: two copies of
// the matrix and two m x m matrices. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

namespace ranklab {

constexpr std::array<double, 3> kNewtonSchulz = {3.4445, -4.7750, 2.0315};

// RETURNS: a matrix of the same shape and type. Computed in `type`, or if unset in the matrix's own type. A zero matrix
// stays zero.
at::Tensor newton_schulz(const at::Tensor& matrix, int64_t steps, std::optional<at::ScalarType> type = std::nullopt);

}  // namespace ranklab
