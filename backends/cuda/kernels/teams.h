// Groups of GPU threads that compute a sum together: a team of 8 or 32 neighbouring lanes, or all threads of a block,
// always in the same order, so that a result is bit-identical in every run. Only for kernels (nvcc). Thread rule: all
// lanes of a warp, or all threads of a block, call together.
#pragma once
#include <cstdint>

#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

constexpr int kWarpLanes = 32, kMostThreads = 512;
constexpr unsigned kAllLanes = 0xffffffffU;

// The sum over `kLanes` neighbouring lanes, returned to each of them.
template <int kLanes, typename W>
__device__ W sum_of_lanes(W x) {
  RANKLAB_UNROLL
  for (int step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step, kLanes);
  return x;
}

template <typename W>
__device__ W sum_of_block(W x) {
  __shared__ W warps[kMostThreads / kWarpLanes];
  x = sum_of_lanes<kWarpLanes>(x);
  __syncthreads();  // until all threads have read the previous sum
  if (threadIdx.x % kWarpLanes == 0) warps[threadIdx.x / kWarpLanes] = x;
  __syncthreads();
  W total = warps[0];
  for (unsigned i = 1; i < blockDim.x / kWarpLanes; ++i) total += warps[i];
  return total;
}

// The team is kLanes lanes of a warp, or the whole block if kLanes is 0.
template <int kLanes, typename W>
__device__ W sum_of_team(W x) {
  if constexpr (kLanes == 0) return sum_of_block(x);
  return sum_of_lanes < kLanes == 0 ? 1 : kLanes > (x);
}

inline int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of threads for `work` items, one each, rounded up to whole warps.
inline unsigned threads_for(int64_t work) {
  const int64_t threads = quotient_up(work, kWarpLanes) * kWarpLanes;
  return static_cast<unsigned>(threads < kMostThreads ? (threads > 0 ? threads : kWarpLanes) : kMostThreads);
}

inline unsigned at_most(int64_t blocks, int64_t most) { return static_cast<unsigned>(blocks < most ? blocks : most); }

}  // namespace ranklab::rows
