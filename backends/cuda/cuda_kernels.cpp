#include "backends/cuda/cuda_kernels.h"

#include <c10/cuda/CUDAStream.h>

#include <string>

#include "backends/cuda/kernels/lists_kernels.h"
#include "backends/cuda/kernels/loss_kernels.h"
#include "backends/cuda/kernels/merge_kernels.h"
#include "backends/cuda/kernels/norm_kernels.h"
#include "backends/cuda/kernels/qkv_kernels.h"
#include "backends/cuda/kernels/sum_kernels.h"
#include "backends/cuda/kernels/swiglu_kernels.h"
#include "backends/cuda/kernels/tasks.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

using namespace rows;

void accept(cudaError_t code, const char* kernel) {
  RANKLAB_CHECK(code == cudaSuccess, ErrorKind::kEnvironment, .where = "cuda backend",
                .what = std::string("a kernel could not be started: ") + kernel, .got = cudaGetErrorString(code),
                .want = "a GPU of compute capability 8.0 or higher",
                .fix = "build for this GPU (-DRANKLAB_CUDA_ARCHITECTURES)");
}

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

// Copies the values (V) of a fused projection, which per-head norms leave unchanged.
void copy_values(const kernels::HeadNormShape& shape, size_t number_bytes, const void* from, void* to) {
  const auto bytes = [&](int64_t heads) { return static_cast<size_t>(heads * shape.head_dim) * number_bytes; };
  const size_t pitch = bytes(shape.heads + 2 * shape.groups), skip = bytes(shape.heads + shape.groups);
  if (shape.tokens == 0) return;
  accept(cudaMemcpy2DAsync(static_cast<char*>(to) + skip, pitch, static_cast<const char*>(from) + skip, pitch,
                           bytes(shape.groups), static_cast<size_t>(shape.tokens), cudaMemcpyDeviceToDevice, stream()),
         "copy of values");
}

class CudaKernels final : public DeviceKernels {
 public:
  void norm(const DeviceNorm& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_norm(norm_task<T>(n), stream()), "norm"); });
  }
  void norm_recompute(const DeviceNorm& n) const override {
    for_number(n.number,
               [&]<typename T>() { accept(launch_norm_recompute(norm_task<T>(n), stream()), "norm recompute"); });
  }
  void norm_grad(const DeviceNormGrad& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_norm_grad(norm_grad_task<T>(n), stream()), "norm grad"); });
  }
  void head_norm(const DeviceHeadNorm& n) const override {
    for_number(n.number, [&]<typename T>() {
      accept(launch_norm(head_norm_task<T>(n), stream()), "head norm");
      copy_values(n.shape, sizeof(T), n.qkv, n.out);
    });
  }
  void head_norm_grad(const DeviceHeadNorm& n) const override {
    for_number(n.number, [&]<typename T>() {
      accept(launch_norm_grad(head_norm_grad_task<T>(n, false), stream()), "query norm grad");
      accept(launch_norm_grad(head_norm_grad_task<T>(n, true), stream()), "key norm grad");
      copy_values(n.shape, sizeof(T), n.grad_out, n.grad_qkv);
    });
  }
  void swiglu(const DeviceSwiglu& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_swiglu(swiglu_task<T>(n), stream()), "swiglu"); });
  }
  void swiglu_grad(const DeviceSwiglu& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_swiglu_grad(swiglu_task<T>(n), stream()), "swiglu grad"); });
  }
  void split_qkv(const DeviceQkv& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_split_qkv(qkv_task<T>(n), stream()), "split of heads"); });
  }
  void merge_qkv(const DeviceQkv& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_merge_qkv(qkv_task<T>(n), stream()), "merge of heads"); });
  }
  void merge_softmax(const DeviceMerge& n) const override {
    for_number(n.number,
               [&]<typename T>() { accept(launch_merge_softmax(merge_task<T>(n), stream()), "merge of softmax"); });
  }
  void loss_statistics(const DeviceLoss& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_loss_statistics(loss_task<T>(n), stream()), "loss"); });
  }
  void loss_grad(const DeviceLoss& n) const override {
    for_number(n.number, [&]<typename T>() { accept(launch_loss_grad(loss_task<T>(n), stream()), "loss grad"); });
  }
  void add_squares(DeviceNumber number, const std::vector<DeviceArray>& arrays, double* parts,
                   double* total) const override {
    accept(launch_squares(squares_list(arrays), static_cast<Kind>(number), parts, total, stream()), "squares");
  }
  void adam(const DeviceAdam& n, const std::vector<DeviceAdamTensor>& tensors) const override {
    accept(launch_adam(adam_list(tensors), adam_kinds(n), adam_rule(n), stream()), "AdamW");
  }
  void accumulate(const DeviceSum& n) const override {
    for_narrow_number(n.number,
                      [&]<typename T>() { accept(launch_accumulate(sum_task<T>(n), stream()), "sum of gradients"); });
  }
};

}  // namespace

const DeviceKernels& cuda_kernels() {
  static const CudaKernels kernels;
  return kernels;
}

}  // namespace ranklab
