// Which tensors have row kernels, on a CPU and on devices that provide them, and the dtype that costs and traces record
// for them. All other tensors use plain ATen ops. Thread rule: pure functions.
#pragma once
#include <ATen/core/Tensor.h>

#include <type_traits>

#include "core/base/dtype.h"
#include "core/nn/kernels/device_kernels.h"
#include "core/nn/kernels/row_kernels_16bit.h"
#include "core/sim/op_cost.h"

namespace ranklab {

// The kernels of x's device. Null: the device has none, or x is on a CPU, where the loops of row_kernels.h are used.
inline const DeviceKernels* device_kernels_of(const at::Tensor& x) {
  if (x.is_cpu()) return device_kernels(KernelDevice::kCpu);
  return x.is_cuda() ? device_kernels(KernelDevice::kCuda) : nullptr;
}

// Meta tensors (backends/meta) take the CPU's path but skip its loops, so that plans match simulated runs. A CPU for
// which tests registered kernels counts as a device.
inline bool as_on_cpu(const at::Tensor& x) {
  return x.is_meta() || (x.is_cpu() && device_kernels(KernelDevice::kCpu) == nullptr);
}
// The device on which the host computes values for `x` or reads its values.
inline at::Device host_side(const at::Tensor& x) { return x.is_meta() ? x.device() : at::Device(at::kCPU); }

inline bool has_kernel_type(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble || x.scalar_type() == at::kBFloat16 ||
         x.scalar_type() == at::kHalf;
}
inline bool has_row_kernels(const at::Tensor& x) {
  return has_kernel_type(x) && (as_on_cpu(x) || device_kernels_of(x) != nullptr);
}
// REQUIRES: has_kernel_type(x).
inline DeviceNumber device_number(const at::Tensor& x) {
  if (x.scalar_type() == at::kBFloat16) return DeviceNumber::kBf16;
  if (x.scalar_type() == at::kHalf) return DeviceNumber::kFp16;
  return x.scalar_type() == at::kDouble ? DeviceNumber::kFp64 : DeviceNumber::kFp32;
}

// The strides of a [batch, head, seq, head_dim] tensor, or of one without the last dimension, in the form that kernels
// on heads take.
inline kernels::HeadStrides strides_of(const at::Tensor& x) { return {x.stride(0), x.stride(1), x.stride(2)}; }
inline at::Tensor with_dense_rows(const at::Tensor& x) { return x.stride(-1) == 1 ? x : x.contiguous(); }

// The address of a tensor's first element; null for an undefined one.
inline const void* device_in(const at::Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; }
inline void* device_out(const at::Tensor& x) { return x.defined() ? x.mutable_data_ptr() : nullptr; }

inline DType dtype_of(const at::Tensor& x) { return dtype_of(x.scalar_type()); }

inline double bytes_of(const at::Tensor& x) {
  return static_cast<double>(x.numel()) * static_cast<double>(x.itemsize());
}

// The type in which a row kernel computes and saves its row statistics: fp32 for 16-bit tensors.
template <typename T>
using KernelWide = std::conditional_t<sizeof(T) == 2, float, T>;
inline at::ScalarType kernel_wide_type(const at::Tensor& x) { return x.itemsize() == 2 ? at::kFloat : x.scalar_type(); }

// The elements of a tensor that has row kernels. REQUIRES: T is the type that for_kernel_type() passes, or its
// KernelWide.
template <typename T>
const T* kernel_in(const at::Tensor& x) {
  return static_cast<const T*>(x.const_data_ptr());
}
template <typename T>
T* kernel_out(const at::Tensor& x) {
  return static_cast<T*>(x.mutable_data_ptr());
}

// Calls f.template operator()<T>() with the C++ type of a tensor that has row kernels. Skips meta tensors, which have
// no elements.
template <typename F>
void for_kernel_type(const at::Tensor& x, F&& f) {
  if (x.is_meta()) return;
  if (x.scalar_type() == at::kDouble) {
    f.template operator()<double>();
  } else if (x.scalar_type() == at::kBFloat16) {
    f.template operator()<kernels::Bf16>();
  } else if (x.scalar_type() == at::kHalf) {
    f.template operator()<kernels::Fp16>();
  } else {
    f.template operator()<float>();
  }
}

}  // namespace ranklab
