#include "backends/cuda/kernels/loss_kernels.h"

#include "backends/cuda/kernels/grids.h"
#include "backends/cuda/kernels/teams.h"

namespace ranklab::rows {
namespace {

template <typename W>
__device__ MaxSum<W> join_lanes(MaxSum<W> all) {
  for (int step = kWarpLanes / 2; step > 0; step /= 2) {
    const MaxSum<W> other = {__shfl_xor_sync(kAllLanes, all.maximum, step), __shfl_xor_sync(kAllLanes, all.sum, step)};
    all = joined(all, other);
  }
  return all;
}

template <int kItems, typename T>
__global__ void __launch_bounds__(kMostThreads) statistics_of_rows(LossTask<T> task) {
  using W = Wide<T>;
  __shared__ W maxima[kWarpLanes], sums[kWarpLanes];
  for (int64_t row = blockIdx.x; row < task.rows; row += gridDim.x) {
    const MaxSum<W> of_warp =
        join_lanes(max_sum_of_share<kItems>(task, row, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)));
    __syncthreads();  // until all threads have read the previous row's result
    if (threadIdx.x % kWarpLanes == 0) {
      maxima[threadIdx.x / kWarpLanes] = of_warp.maximum;
      sums[threadIdx.x / kWarpLanes] = of_warp.sum;
    }
    __syncthreads();
    if (threadIdx.x != 0) continue;
    MaxSum<W> all = of_warp;
    for (unsigned i = 1; i < blockDim.x / kWarpLanes; ++i) all = joined(all, {maxima[i], sums[i]});
    write_statistics(task, row, all);
  }
}

template <int kItems, typename T>
__global__ void __launch_bounds__(kGridThreads) loss_grad_of_rows(LossTask<T> task) {
  for_place(task.rows, task.width / kItems,
            [&](int64_t row, int64_t pack) { loss_grad<kItems>(task, row, pack * kItems); });
}

template <typename T>
bool packs(const LossTask<T>& t) {
  return t.width % kPack<T> == 0 && aligned(t.logits, t.grad);
}

}  // namespace

template <typename T>
cudaError_t launch_loss_statistics(const LossTask<T>& task, cudaStream_t stream) {
  if (task.rows == 0) return cudaSuccess;
  return with_items<T>(packs(task), [&]<int kItems>() {
    const unsigned blocks = at_most(task.rows, kMostGridColumns);
    statistics_of_rows<kItems, T><<<blocks, threads_for(quotient_up(task.real, kItems)), 0, stream>>>(task);
    return cudaGetLastError();
  });
}

template <typename T>
cudaError_t launch_loss_grad(const LossTask<T>& task, cudaStream_t stream) {
  return with_items<T>(packs(task), [&]<int kItems>() {
    return launch_places(task.rows, task.width / kItems, stream, loss_grad_of_rows<kItems, T>, task);
  });
}

#define RANKLAB_INSTANCE(T)                                                         \
  template cudaError_t launch_loss_statistics<T>(const LossTask<T>&, cudaStream_t); \
  template cudaError_t launch_loss_grad<T>(const LossTask<T>&, cudaStream_t);
RANKLAB_INSTANCE(float)
RANKLAB_INSTANCE(double)
RANKLAB_INSTANCE(Bf16)
RANKLAB_INSTANCE(Fp16)

}  // namespace ranklab::rows
