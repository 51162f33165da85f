#include "backends/cuda/kernels/quantize_kernels.h"

#include "backends/cuda/kernels/thread_teams.h"

namespace ranklab {
namespace {

template <typename T>
__device__ void finish(const QuantizeTask<T>& task, const ScaleMaker& maker, int64_t group, uint32_t size, int lane,
                       int lanes) {
  const float amax = OneLane::number(size);
  if (lane == 0) write_scale(task, maker, group, amax);
  round_of_lane(task, group, make_scale(maker, amax), lane, lanes);
}

// One team of kLanes lanes per group. All lanes of a warp run together; lanes without a group are idle.
template <typename T, int kLanes>
__global__ void quantize_tiles(QuantizeTask<T> task) {
  const ScaleMaker maker = maker_of(task);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  constexpr int kTeams = kThreads / kLanes;
  const int64_t groups = task.groups(), stride = static_cast<int64_t>(gridDim.x) * kTeams;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTeams; first < groups; first += stride) {
    const int64_t group = first + threadIdx.x / kLanes;
    const bool mine = group < groups;
    const uint32_t size = largest_of_team<kLanes>(mine ? amax_of_lane(task, group, lane, kLanes) : 0);
    if (mine) finish(task, maker, group, size, lane, kLanes);
  }
}

// One block of threads per group.
template <typename T>
__global__ void quantize_blocks(QuantizeTask<T> task) {
  const ScaleMaker maker = maker_of(task);
  const int lane = static_cast<int>(threadIdx.x);
  for (int64_t group = blockIdx.x; group < task.groups(); group += gridDim.x) {
    const uint32_t size = largest_of_block(amax_of_lane(task, group, lane, kThreads));
    finish(task, maker, group, size, lane, kThreads);
  }
}

// All threads process the single group. Non-negative floats are ordered like their bits.
template <typename T>
__global__ void find_tensor_amax(QuantizeTask<T> task, unsigned* amax) {
  const int lane = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const uint32_t size = largest_of_block(amax_of_lane(task, 0, lane, static_cast<int>(gridDim.x) * kThreads));
  if (threadIdx.x == 0) atomicMax(amax, size);
}

template <typename T>
__global__ void quantize_whole(QuantizeTask<T> task) {
  const ScaleMaker maker = maker_of(task);
  const int lane = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  finish(task, maker, 0, OneLane::bits(*task.tensor_amax), lane, static_cast<int>(gridDim.x) * kThreads);
}

template <typename T>
cudaError_t launch(const QuantizeTask<T>& task, cudaStream_t stream) {
  const int64_t groups = task.groups();
  if (groups == 0) return cudaSuccess;
  constexpr int kHalf = kWarp / 2, kMostTile = 512;
  if (task.height == 1 && task.width <= kHalf) {
    quantize_tiles<T, kHalf><<<blocks_for(groups, kThreads / kHalf), kThreads, 0, stream>>>(task);
  } else if (task.height == 1 && task.width <= kMostTile) {
    quantize_tiles<T, kWarp><<<blocks_for(groups, kThreads / kWarp), kThreads, 0, stream>>>(task);
  } else {
    quantize_blocks<T><<<blocks_for(groups, 1), kThreads, 0, stream>>>(task);
  }
  return cudaGetLastError();
}

template <typename T>
cudaError_t launch_amax(QuantizeTask<T> task, float* amax, cudaStream_t stream) {
  task.height = task.rows;
  task.width = task.cols;
  const cudaError_t cleared = cudaMemsetAsync(amax, 0, sizeof(float), stream);
  if (cleared != cudaSuccess || task.rows * task.cols == 0) return cleared;
  find_tensor_amax<T>
      <<<blocks_for(task.rows * task.cols, kThreads), kThreads, 0, stream>>>(task, reinterpret_cast<unsigned*>(amax));
  return cudaGetLastError();
}

template <typename T>
cudaError_t launch_whole(const QuantizeTask<T>& task, cudaStream_t stream) {
  if (task.rows * task.cols == 0) return cudaSuccess;
  quantize_whole<T><<<blocks_for(task.rows * task.cols, kThreads), kThreads, 0, stream>>>(task);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_tensor_amax(const QuantizeTask<float>& task, float* amax, cudaStream_t stream) {
  return launch_amax(task, amax, stream);
}
cudaError_t launch_tensor_amax(const QuantizeTask<Bf16Bits>& task, float* amax, cudaStream_t stream) {
  return launch_amax(task, amax, stream);
}
cudaError_t launch_quantize(const QuantizeTask<float>& task, cudaStream_t stream) { return launch(task, stream); }
cudaError_t launch_quantize(const QuantizeTask<Bf16Bits>& task, cudaStream_t stream) { return launch(task, stream); }
cudaError_t launch_quantize_tensor(const QuantizeTask<float>& task, cudaStream_t stream) {
  return launch_whole(task, stream);
}
cudaError_t launch_quantize_tensor(const QuantizeTask<Bf16Bits>& task, cudaStream_t stream) {
  return launch_whole(task, stream);
}

}  // namespace ranklab
