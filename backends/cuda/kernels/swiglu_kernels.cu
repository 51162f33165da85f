#include "backends/cuda/kernels/swiglu_kernels.h"

#include "backends/cuda/kernels/grids.h"

namespace ranklab::rows {
namespace {

template <int kItems, typename T>
__global__ void __launch_bounds__(kGridThreads) swiglu_of_rows(SwigluTask<T> task) {
  for_place(task.rows, task.cols / kItems,
            [&](int64_t row, int64_t pack) { swiglu<kItems>(task, row, pack * kItems); });
}

template <int kItems, typename T>
__global__ void __launch_bounds__(kGridThreads) swiglu_grad_of_rows(SwigluTask<T> task) {
  for_place(task.rows, task.cols / kItems,
            [&](int64_t row, int64_t pack) { swiglu_grad<kItems>(task, row, pack * kItems); });
}

template <typename T>
bool packs(const SwigluTask<T>& t) {
  return t.cols % kPack<T> == 0 && aligned(t.gate_up, t.grad_out, t.out, t.grad_gate_up);
}

}  // namespace

template <typename T>
cudaError_t launch_swiglu(const SwigluTask<T>& task, cudaStream_t stream) {
  return with_items<T>(packs(task), [&]<int kItems>() {
    return launch_places(task.rows, task.cols / kItems, stream, swiglu_of_rows<kItems, T>, task);
  });
}

template <typename T>
cudaError_t launch_swiglu_grad(const SwigluTask<T>& task, cudaStream_t stream) {
  return with_items<T>(packs(task), [&]<int kItems>() {
    return launch_places(task.rows, task.cols / kItems, stream, swiglu_grad_of_rows<kItems, T>, task);
  });
}

#define RANKLAB_INSTANCE(T)                                                  \
  template cudaError_t launch_swiglu<T>(const SwigluTask<T>&, cudaStream_t); \
  template cudaError_t launch_swiglu_grad<T>(const SwigluTask<T>&, cudaStream_t);
RANKLAB_INSTANCE(float)
RANKLAB_INSTANCE(double)
RANKLAB_INSTANCE(Bf16)
RANKLAB_INSTANCE(Fp16)

}  // namespace ranklab::rows
