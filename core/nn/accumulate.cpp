#include "core/nn/accumulate.h"

#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The device's kernels, if a dedicated kernel there adds 16-bit numbers to fp32 ones; otherwise null.
const DeviceKernels* widening_kernels(const at::Tensor& sum, const at::Tensor& x) {
  const bool widens = sum.scalar_type() == at::kFloat && has_kernel_type(x) && x.itemsize() == 2;
  return widens && sum.is_contiguous() && x.is_contiguous() ? device_kernels_of(x) : nullptr;
}

}  // namespace

void accumulate(const at::Tensor& sum, const at::Tensor& x, bool first) {
  if (const DeviceKernels* device = widening_kernels(sum, x)) {
    device->accumulate(
        {.number = device_number(x), .x = device_in(x), .sum = device_out(sum), .count = x.numel(), .first = first});
  } else if (first) {
    sum.copy_(x);
  } else {
    sum.add_(x);
  }
}

}  // namespace ranklab
