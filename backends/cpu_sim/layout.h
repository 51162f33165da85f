// The memory layout of a call's rows. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace ranklab::cpu_sim {

inline std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

// Elements of one row, also for a tensor without rows.
inline int64_t row_elements(const at::Tensor& tensor) {
  const auto tail = tensor.sizes().slice(1);
  return std::accumulate(tail.begin(), tail.end(), int64_t{1}, std::multiplies<>());
}

inline int64_t row_bytes(const at::Tensor& tensor) {
  return row_elements(tensor) * static_cast<int64_t>(tensor.element_size());
}

// First row of each part.
inline std::vector<int64_t> starts(const std::vector<int64_t>& rows) {
  std::vector<int64_t> out(rows.size());
  std::exclusive_scan(rows.begin(), rows.end(), out.begin(), int64_t{0});
  return out;
}

}  // namespace ranklab::cpu_sim
