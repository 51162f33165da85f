// The interface of a device's fused training kernels. A backend module registers them when it is loaded
// (backends/cuda); the autograd functions of core/nn, core/parallel and core/optim, which run row kernels on a CPU
// (row_kernels.h), then run these on the device's tensors instead. Results equal the CPU's up to rounding: sums have
// their own order, which is the same in every run. Pointers are device addresses; 16-bit tensors are computed in fp32,
// and their norms' row statistics and rotary tables are fp32. Torch-free. Cost: one read and one write of each operand.
// The caller charges the virtual clock for what the CPU's path costs, either in the same scope (op_observer.h) or by
// its operators (charge_on_shapes.h); tests/cuda/device_times_test.cpp compares the two. Thread rule: calls are
// asynchronous on the device's current stream, from any thread.
#pragma once
#include <cstdint>
#include <vector>

#include "core/nn/kernels/head_norm_kernels.h"
#include "core/nn/kernels/merge_kernels.h"
#include "core/nn/kernels/row_kernels.h"

namespace ranklab {

enum class DeviceNumber : int { kFp32, kFp64, kBf16, kFp16 };

// Scratch for a weight's gradient: this many rows of the weight's width, in the type in which kernels compute.
constexpr int64_t kDeviceGradParts = 512;
// Scratch for sums of squares: one number per chunk of this many elements of a tensor; the last chunk may be shorter.
constexpr int64_t kDeviceSquaresChunk = int64_t{1} << 16;

struct DeviceNorm {
  DeviceNumber number;
  kernels::RowShape shape;
  double epsilon = 0;
  double weight_offset = 0;
  const void* x = nullptr;
  const void* branch = nullptr;  // null: nothing is added, and sum is not written
  const void* weight = nullptr;
  void* sum = nullptr;
  void* out = nullptr;
  void* inv_rms = nullptr;
};
struct DeviceNormGrad {
  DeviceNumber number;
  kernels::RowShape shape;
  double weight_offset = 0;
  const void* grad_out = nullptr;
  const void* grad_sum = nullptr;  // null: nothing is added
  const void* sum = nullptr;
  const void* weight = nullptr;
  const void* inv_rms = nullptr;
  void* grad_in = nullptr;
  void* grad_weight = nullptr;
  void* parts = nullptr;  // scratch
};

// As for head_norm_forward() and head_norm_backward().
struct DeviceHeadNorm {
  DeviceNumber number;
  kernels::HeadNormShape shape;
  const void* qkv = nullptr;
  const void* q_weight = nullptr;
  const void* k_weight = nullptr;
  void* inv_rms = nullptr;
  void* out = nullptr;  // forward
  const void* grad_out = nullptr;
  void* grad_qkv = nullptr;
  void* grad_q_weight = nullptr;
  void* grad_k_weight = nullptr;
  void* parts = nullptr;  // scratch
};

struct DeviceSwiglu {
  DeviceNumber number;
  kernels::RowShape shape;
  const void* gate_up = nullptr;
  void* out = nullptr;  // forward
  const void* grad_out = nullptr;
  void* grad_gate_up = nullptr;
};

// As for split_qkv() and merge_qkv(), except that q, k and v have strides in both.
struct DeviceQkv {
  DeviceNumber number;
  kernels::QkvShape shape;
  kernels::HeadStrides3 strides;
  const void* cos = nullptr;
  const void* sin = nullptr;
  void* qkv = nullptr;
  void* q = nullptr;
  void* k = nullptr;
  void* v = nullptr;
};

// As for merge_softmax().
struct DeviceMerge {
  DeviceNumber number;  // type of `part`
  kernels::MergeShape shape;
  kernels::MergeStrides strides;
  const void* part = nullptr;
  const void* part_log_sum_exp = nullptr;
  void* out = nullptr;
  void* log_sum_exp = nullptr;
};

// Logits [rows, width], of which the first `real` columns are not padding. targets [rows] are vocabulary ids; column 0
// has id `begin`.
struct DeviceLoss {
  DeviceNumber number;
  int64_t rows = 0, width = 0, real = 0, begin = 0;
  const void* logits = nullptr;
  const int64_t* targets = nullptr;
  void* statistics = nullptr;  // [3, rows]: maximum, sum of exp(logit - maximum), the target's logit or 0
  // Backward: grad = exp(logit - maximum) * factor * grad_loss - (grad_loss at the target); 0 in padding.
  const void* maximum = nullptr;
  const void* factor = nullptr;
  const void* grad_loss = nullptr;  // one number
  void* grad = nullptr;
};

struct DeviceArray {
  const void* numbers = nullptr;
  int64_t count = 0;
};

// One tensor's weight and moments (updated in place), its gradient, and the destination of a copy of the weight in the
// model's dtype (null: no copy).
struct DeviceAdamTensor {
  void* weight = nullptr;
  void* exp_avg = nullptr;
  void* exp_avg_sq = nullptr;
  const void* grad = nullptr;
  void* copy = nullptr;
  int64_t count = 0;
};
struct DeviceAdam {
  DeviceNumber weight = DeviceNumber::kFp32, exp_avg = weight, exp_avg_sq = weight, grad = weight, copy = weight;
  double lr = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  double factor = 1;  // multiplies gradients
  int64_t step = 1;   // counted from 1
};

// A sum of 16-bit gradients in fp32: sum += x, or, with `first`, sum = x.
struct DeviceSum {
  DeviceNumber number;  // type of x
  const void* x = nullptr;
  void* sum = nullptr;
  int64_t count = 0;
  bool first = false;
};

class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  virtual void norm(const DeviceNorm& norm) const = 0;
  virtual void norm_recompute(const DeviceNorm& norm) const = 0;  // out from x and inv_rms
  virtual void norm_grad(const DeviceNormGrad& grad) const = 0;
  virtual void head_norm(const DeviceHeadNorm& norm) const = 0;
  virtual void head_norm_grad(const DeviceHeadNorm& norm) const = 0;
  virtual void swiglu(const DeviceSwiglu& rows) const = 0;
  virtual void swiglu_grad(const DeviceSwiglu& rows) const = 0;
  virtual void split_qkv(const DeviceQkv& heads) const = 0;
  virtual void merge_qkv(const DeviceQkv& heads) const = 0;
  virtual void merge_softmax(const DeviceMerge& merge) const = 0;
  virtual void loss_statistics(const DeviceLoss& loss) const = 0;
  virtual void loss_grad(const DeviceLoss& loss) const = 0;
  // Adds the sum of squares of all arrays to *total. parts: scratch.
  virtual void add_squares(DeviceNumber number, const std::vector<DeviceArray>& arrays, double* parts,
                           double* total) const = 0;
  virtual void adam(const DeviceAdam& rule, const std::vector<DeviceAdamTensor>& tensors) const = 0;
  virtual void accumulate(const DeviceSum& sum) const = 0;
};

// The device whose tensors the kernels serve. For kCpu, tests register kernels that run on a CPU.
enum class KernelDevice { kCpu, kCuda };
// Null (the initial state): no kernels. The object must outlive its use. Thread rule: before ranks start.
void use_device_kernels(KernelDevice device, const DeviceKernels* kernels);
const DeviceKernels* device_kernels(KernelDevice device);

}  // namespace ranklab
