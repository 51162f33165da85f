// Groups of GPU threads that compute the largest magnitude of a group of numbers together: a team of neighbouring
// lanes, or a block. Magnitudes are compared as integers, where NaN is above infinity. Only for kernels (nvcc). Cost:
// log2(lanes) exchanges; for a block, one more pass over its warps. Thread rule: all lanes of a warp, or all threads of
// a block, call together.
#pragma once
#include <cstdint>

namespace ranklab {

inline constexpr int kWarp = 32, kThreads = 256, kMostBlocks = 8192;
inline constexpr unsigned kAll = 0xffffffffU;

inline unsigned blocks_for(int64_t work, int64_t per_block) {
  const int64_t blocks = (work + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ inline uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

// The largest value of `kLanes` neighbouring lanes, returned to each of them.
template <int kLanes>
__device__ uint32_t largest_of_team(uint32_t size) {
  for (int step = kLanes / 2; step > 0; step /= 2) size = larger(size, __shfl_xor_sync(kAll, size, step, kLanes));
  return size;
}

__device__ inline uint32_t largest_of_block(uint32_t size) {
  __shared__ uint32_t warps[kThreads / kWarp];
  size = largest_of_team<kWarp>(size);
  __syncthreads();  // until all threads have read the previous group's result
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = size;
  __syncthreads();
  for (int i = 0; i < kThreads / kWarp; ++i) size = larger(size, warps[i]);
  return size;
}

}  // namespace ranklab
