#include "backends/cuda/kernels/merge_kernels.h"

#include "backends/cuda/kernels/grids.h"
#include "backends/cuda/kernels/teams.h"

namespace ranklab::rows {
namespace {

template <int kItems, typename T>
__global__ void __launch_bounds__(kGridThreads) merge_rows(MergeTask<T> task) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < task.all_rows(); i += step) {
    const MergedRow<T> row = merged_row(task, i);
    __syncwarp();  // until all lanes have read the sum that one of them overwrites
    merge_share<kItems>(task, row, static_cast<int>(threadIdx.x), kWarpLanes);
  }
}

}  // namespace

template <typename T>
cudaError_t launch_merge_softmax(const MergeTask<T>& task, cudaStream_t stream) {
  if (task.all_rows() == 0) return cudaSuccess;
  constexpr unsigned kRows = kGridThreads / kWarpLanes;
  return with_items<T>(in_row_packs<kPack<T>>(task), [&]<int kItems>() {
    const unsigned blocks = at_most(quotient_up(task.all_rows(), kRows), kMostGridColumns);
    merge_rows<kItems, T><<<blocks, dim3(kWarpLanes, kRows), 0, stream>>>(task);
    return cudaGetLastError();
  });
}

template cudaError_t launch_merge_softmax<float>(const MergeTask<float>&, cudaStream_t);
template cudaError_t launch_merge_softmax<double>(const MergeTask<double>&, cudaStream_t);
template cudaError_t launch_merge_softmax<Bf16>(const MergeTask<Bf16>&, cudaStream_t);
template cudaError_t launch_merge_softmax<Fp16>(const MergeTask<Fp16>&, cudaStream_t);

}  // namespace ranklab::rows
