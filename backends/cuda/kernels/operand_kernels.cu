#include "backends/cuda/kernels/operand_kernels.h"

#include "backends/cuda/kernels/operand_body.h"
#include "backends/cuda/kernels/thread_teams.h"

namespace ranklab {
namespace {

__device__ int64_t thread_number() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }
__device__ int64_t thread_count() { return static_cast<int64_t>(gridDim.x) * kThreads; }

// One team of kLanes lanes per group. All lanes of a warp run together, those without a group idle.
template <int kLanes>
__global__ void amax_of_teams(DeviceMatrix m, float* amax) {
  constexpr int kTeams = kThreads / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t groups = m.groups(), stride = static_cast<int64_t>(gridDim.x) * kTeams;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTeams; first < groups; first += stride) {
    const int64_t group = first + threadIdx.x / kLanes;
    const uint32_t size = largest_of_team<kLanes>(group < groups ? amax_of_share(m, group, lane, kLanes) : 0);
    if (group < groups && lane == 0) amax[group] = OneLane::number(size);
  }
}

__global__ void amax_of_threads(DeviceMatrix m, float* amax) {
  for (int64_t group = thread_number(); group < m.groups(); group += thread_count())
    amax[group] = OneLane::number(amax_of_share(m, group, 0, 1));
}

__global__ void amax_of_blocks(DeviceMatrix m, float* amax) {
  for (int64_t group = blockIdx.x; group < m.groups(); group += gridDim.x) {
    const uint32_t size = largest_of_block(amax_of_share(m, group, threadIdx.x, kThreads));
    if (threadIdx.x == 0) amax[group] = OneLane::number(size);
  }
}

// For a single group; *amax must be zero before.
__global__ void amax_of_whole(DeviceMatrix m, unsigned* amax) {
  const uint32_t size = largest_of_block(amax_of_share(m, 0, thread_number(), thread_count()));
  if (threadIdx.x == 0) atomicMax(amax, size);
}

__global__ void scales_of_groups(ScaleMaker maker, const float* amax, int64_t groups, const float* tensor_amax,
                                 float* scales) {
  const ScaleMaker own = maker_of_tensor(maker, tensor_amax);
  for (int64_t group = thread_number(); group < groups; group += thread_count())
    scales[group] = make_scale(own, amax[group]);
}

__global__ void round_elements(DeviceMatrix m, RoundingGrid grid, const float* scales, DeviceNoise noise,
                               DeviceRounded out) {
  for (int64_t row = blockIdx.y; row < m.rows; row += gridDim.y) {
    for (int64_t col = thread_number(); col < m.cols; col += thread_count())
      round_element(m, grid, scales, noise, out, row, col);
  }
}

__global__ void hash_all_rows(DeviceMatrix m, uint64_t* numbers) {
  for (int64_t row = thread_number(); row < m.rows; row += thread_count()) numbers[row] = hash_of_row(m, row);
}

}  // namespace

cudaError_t launch_group_amax(const DeviceMatrix& matrix, float* amax, cudaStream_t stream) {
  DeviceMatrix m = matrix;
  if (m.groups() == 1 && m.stride == m.cols) {  // contiguous: handled as one row
    m.cols = m.width = m.stride = m.rows * m.cols;
    m.rows = m.height = 1;
  }
  const int64_t groups = m.groups();
  if (groups == 0 || m.cols == 0) return cudaSuccess;
  if (groups == 1) {
    const cudaError_t cleared = cudaMemsetAsync(amax, 0, sizeof(float), stream);
    if (cleared != cudaSuccess) return cleared;
    amax_of_whole<<<blocks_for(m.rows * m.cols, kThreads), kThreads, 0, stream>>>(m, reinterpret_cast<unsigned*>(amax));
  } else if (m.width == 1) {
    amax_of_threads<<<blocks_for(groups, kThreads), kThreads, 0, stream>>>(m, amax);
  } else if (m.height == 1 && m.width <= kWarp / 2) {
    amax_of_teams<kWarp / 2><<<blocks_for(groups, 2 * kThreads / kWarp), kThreads, 0, stream>>>(m, amax);
  } else if (m.height == 1) {
    amax_of_teams<kWarp><<<blocks_for(groups, kThreads / kWarp), kThreads, 0, stream>>>(m, amax);
  } else {
    amax_of_blocks<<<blocks_for(groups, 1), kThreads, 0, stream>>>(m, amax);
  }
  return cudaGetLastError();
}

cudaError_t launch_make_scales(const ScaleMaker& maker, const float* amax, int64_t groups, const float* tensor_amax,
                               float* scales, cudaStream_t stream) {
  if (groups == 0) return cudaSuccess;
  scales_of_groups<<<blocks_for(groups, kThreads), kThreads, 0, stream>>>(maker, amax, groups, tensor_amax, scales);
  return cudaGetLastError();
}

cudaError_t launch_round(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales, const DeviceNoise& noise,
                         const DeviceRounded& out, cudaStream_t stream) {
  if (m.rows * m.cols == 0) return cudaSuccess;
  const dim3 blocks(blocks_for(m.cols, kThreads), blocks_for(m.rows, 1));
  round_elements<<<blocks, kThreads, 0, stream>>>(m, grid, scales, noise, out);
  return cudaGetLastError();
}

cudaError_t launch_hash_rows(const DeviceMatrix& m, uint64_t* numbers, cudaStream_t stream) {
  if (m.rows == 0) return cudaSuccess;
  hash_all_rows<<<blocks_for(m.rows, kThreads), kThreads, 0, stream>>>(m, numbers);
  return cudaGetLastError();
}

}  // namespace ranklab
