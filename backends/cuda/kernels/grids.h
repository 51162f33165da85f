// Grids for elementwise kernels over a table of rows and columns: columns along x, rows along y; if the grid is smaller
// than the table, threads loop. Only for kernels (nvcc). Thread rule: launches are asynchronous on `stream`; any
// thread.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

constexpr int kGridThreads = 256;
constexpr int64_t kMostGridRows = 65535, kMostGridColumns = 1 << 20;

// Calls place(row, col) for this thread's elements. For narrow tables a block has several rows.
template <typename F>
__device__ void for_place(int64_t rows, int64_t cols, const F& place) {
  const int64_t row_step = static_cast<int64_t>(gridDim.y) * blockDim.y;
  const int64_t col_step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < rows; row += row_step) {
    for (int64_t col = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; col < cols; col += col_step)
      place(row, col);
  }
}

template <typename Task>
cudaError_t launch_places(int64_t rows, int64_t cols, cudaStream_t stream, void (*kernel)(Task), const Task& task) {
  if (rows == 0 || cols == 0) return cudaSuccess;
  unsigned wide = 32;
  while (wide < kGridThreads && wide < cols) wide *= 2;
  const unsigned high = kGridThreads / wide;
  const auto blocks = [](int64_t work, int64_t each, int64_t most) {
    const int64_t count = (work + each - 1) / each;
    return static_cast<unsigned>(count < most ? count : most);
  };
  const dim3 grid(blocks(cols, wide, kMostGridColumns), blocks(rows, high, kMostGridRows));
  kernel<<<grid, dim3(wide, high), 0, stream>>>(task);
  return cudaGetLastError();
}

template <typename... Pointers>
bool aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

// Calls launch<kItems>() with kItems the number of elements per pack if `packs`, else 1.
template <typename T, typename F>
cudaError_t with_items(bool packs, const F& launch) {
  if (packs) return launch.template operator()<kPack<T>>();
  return launch.template operator()<1>();
}

}  // namespace ranklab::rows
