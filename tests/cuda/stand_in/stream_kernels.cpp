#include "tests/cuda/stand_in/stream_kernels.h"

#include <vector>

#include "tests/cuda/host_kernels.h"
#include "tests/cuda/stand_in/task_memory.h"

namespace ranklab::stand_in {
namespace {

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

const DeviceKernels& stream_kernels() {
  static const StreamKernels kernels;
  return kernels;
}

}  // namespace ranklab::stand_in
