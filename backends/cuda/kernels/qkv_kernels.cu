#include "backends/cuda/kernels/qkv_kernels.h"

#include "backends/cuda/kernels/grids.h"

namespace ranklab::rows {
namespace {

template <bool kSplits, int kItems, typename T>
__global__ void __launch_bounds__(kGridThreads) rotate_rows(QkvTask<T> task) {
  for_place(task.rows(), task.packs(kItems),
            [&](int64_t row, int64_t pack) { rotate_pack<kSplits, kItems>(task, row, pack); });
}

template <typename T>
bool packs(const QkvTask<T>& t) {
  const auto whole = [](const HeadPlaces& p) { return (p.batch | p.head | p.seq) % kPack<T> == 0; };
  return t.head_dim % (2 * kPack<T>) == 0 && whole(t.q_places) && whole(t.k_places) && whole(t.v_places) &&
         aligned(t.qkv, t.q, t.k, t.v, t.cos, t.sin);
}

template <bool kSplits, typename T>
cudaError_t launch_rotate(const QkvTask<T>& task, cudaStream_t stream) {
  return with_items<T>(packs(task), [&]<int kItems>() {
    return launch_places(task.rows(), task.packs(kItems), stream, rotate_rows<kSplits, kItems, T>, task);
  });
}

}  // namespace

template <typename T>
cudaError_t launch_split_qkv(const QkvTask<T>& task, cudaStream_t stream) {
  return launch_rotate<true>(task, stream);
}
template <typename T>
cudaError_t launch_merge_qkv(const QkvTask<T>& task, cudaStream_t stream) {
  return launch_rotate<false>(task, stream);
}

#define RANKLAB_INSTANCE(T)                                                  \
  template cudaError_t launch_split_qkv<T>(const QkvTask<T>&, cudaStream_t); \
  template cudaError_t launch_merge_qkv<T>(const QkvTask<T>&, cudaStream_t);
RANKLAB_INSTANCE(float)
RANKLAB_INSTANCE(double)
RANKLAB_INSTANCE(Bf16)
RANKLAB_INSTANCE(Fp16)

}  // namespace ranklab::rows
