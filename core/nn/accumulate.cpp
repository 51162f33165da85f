#include "core/nn/accumulate.h"

#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

bool widens(const at::Tensor& sum, const at::Tensor& x) {
  const bool wider = sum.scalar_type() == at::kFloat && has_kernel_type(x) && x.itemsize() == 2;
  return wider && sum.is_contiguous() && x.is_contiguous();
}

void add_widened(const at::Tensor& sum, const at::Tensor& x) {
  float* const to = sum.mutable_data_ptr<float>();
  if (x.scalar_type() == at::kBFloat16)
    kernels::add_widened(static_cast<const kernels::Bf16*>(x.const_data_ptr()), to, x.numel());
  else
    kernels::add_widened(static_cast<const kernels::Fp16*>(x.const_data_ptr()), to, x.numel());
}

}  // namespace

void accumulate(const at::Tensor& sum, const at::Tensor& x, bool first) {
  const DeviceKernels* const device = widens(sum, x) ? device_kernels_of(x) : nullptr;
  if (device != nullptr) {
    device->accumulate(
        {.number = device_number(x), .x = device_in(x), .sum = device_out(sum), .count = x.numel(), .first = first});
  } else if (first) {
    sum.copy_(x);
  } else if (widens(sum, x) && x.is_cpu()) {
    add_widened(sum, x);
  } else {
    sum.add_(x);
  }
}

}  // namespace ranklab
