#include "tests/cuda/stand_in/stream_kernels.h"

#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tests/cuda/host_kernels.h"
#include "tests/cuda/stand_in/cuda_runtime.h"
#include "tests/cuda/stand_in/device_memory.h"

namespace ranklab::stand_in {
namespace {

// A task as its kernel finds it on the host: each word that is an address of a GPU is the host's. No number and no two
// of them together are such an address, whose upper 17 bits are 0 and whose others are not.
template <typename Task>
Task there(Task task) {
  static_assert(std::is_trivially_copyable_v<Task> && sizeof(Task) % sizeof(void*) == 0);
  auto* const bytes = reinterpret_cast<char*>(&task);
  for (size_t at = 0; at < sizeof(Task); at += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, bytes + at, sizeof(word));
    word = on_host(word);
    std::memcpy(bytes + at, &word, sizeof(word));
  }
  return task;
}

template <typename Task>
std::vector<Task> there(std::vector<Task> tasks) {
  for (Task& task : tasks) task = there(task);
  return tasks;
}

void launch_here(std::function<void()> work) { launch(c10::cuda::getCurrentCUDAStream().stream(), std::move(work)); }

class StreamKernels final : public DeviceKernels {
 public:
  void norm(const DeviceNorm& n) const override { run(&DeviceKernels::norm, n); }
  void norm_recompute(const DeviceNorm& n) const override { run(&DeviceKernels::norm_recompute, n); }
  void norm_grad(const DeviceNormGrad& n) const override { run(&DeviceKernels::norm_grad, n); }
  void head_norm(const DeviceHeadNorm& n) const override { run(&DeviceKernels::head_norm, n); }
  void head_norm_grad(const DeviceHeadNorm& n) const override { run(&DeviceKernels::head_norm_grad, n); }
  void swiglu(const DeviceSwiglu& n) const override { run(&DeviceKernels::swiglu, n); }
  void swiglu_grad(const DeviceSwiglu& n) const override { run(&DeviceKernels::swiglu_grad, n); }
  void split_qkv(const DeviceQkv& n) const override { run(&DeviceKernels::split_qkv, n); }
  void merge_qkv(const DeviceQkv& n) const override { run(&DeviceKernels::merge_qkv, n); }
  void merge_softmax(const DeviceMerge& n) const override { run(&DeviceKernels::merge_softmax, n); }
  void loss_statistics(const DeviceLoss& n) const override { run(&DeviceKernels::loss_statistics, n); }
  void loss_grad(const DeviceLoss& n) const override { run(&DeviceKernels::loss_grad, n); }
  void accumulate(const DeviceSum& n) const override { run(&DeviceKernels::accumulate, n); }
  void add_squares(DeviceNumber number, const std::vector<DeviceArray>& arrays, double* parts,
                   double* total) const override {
    launch_here([this, number, all = there(arrays), parts = static_cast<double*>(on_host(parts)),
                 total = static_cast<double*>(on_host(total))] { loops_.add_squares(number, all, parts, total); });
  }
  void adam(const DeviceAdam& rule, const std::vector<DeviceAdamTensor>& tensors) const override {
    launch_here([this, rule, all = there(tensors)] { loops_.adam(rule, all); });
  }

 private:
  template <typename Task>
  void run(void (DeviceKernels::*kernel)(const Task&) const, const Task& task) const {
    launch_here([this, kernel, task = there(task)] { (loops_.*kernel)(task); });
  }

  HostKernels loops_;
};

}  // namespace

void use_stream_kernels() {
  static const StreamKernels kernels;
  use_device_kernels(KernelDevice::kCuda, &kernels);
}

}  // namespace ranklab::stand_in
