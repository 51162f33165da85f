#include "backends/cuda/kernels/sum_kernels.h"

#include "backends/cuda/kernels/grids.h"

namespace ranklab::rows {
namespace {

template <int kItems, typename T>
__global__ void __launch_bounds__(kGridThreads) accumulate_all(SumTask<T> task) {
  for_place(1, task.count / kItems, [&](int64_t, int64_t pack) { accumulate<kItems>(task, pack * kItems); });
}

}  // namespace

template <typename T>
cudaError_t launch_accumulate(const SumTask<T>& task, cudaStream_t stream) {
  return with_items<float>(task.count % kPack<float> == 0 && aligned(task.x, task.sum), [&]<int kItems>() {
    return launch_places(1, task.count / kItems, stream, accumulate_all<kItems, T>, task);
  });
}

template cudaError_t launch_accumulate<Bf16>(const SumTask<Bf16>&, cudaStream_t);
template cudaError_t launch_accumulate<Fp16>(const SumTask<Fp16>&, cudaStream_t);

}  // namespace ranklab::rows
