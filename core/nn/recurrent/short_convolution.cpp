#include "core/nn/recurrent/short_convolution.h"

#include <vector>

#include "core/nn/kernels/kernel_path.h"
#include "core/nn/rerun_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// 1 where position s and the position `back` before it belong to the same segment: [S, B or 1, 1].
at::Tensor same_segment(const at::Tensor& segment_SB, int64_t back) {
  const int64_t rest = segment_SB.size(0) - back;
  const at::Tensor same = segment_SB.narrow(0, back, rest) == segment_SB.narrow(0, 0, rest);
  return at::constant_pad_nd(same, {0, 0, back, 0}).unsqueeze(-1);
}

// `before`: the positions before x, one fewer than the length of the kernel.
at::Tensor convolved(const at::Tensor& before, const at::Tensor& x, const ShortKernel& kernel,
                     const at::Tensor& segment_SB) {
  const int64_t length = kernel.weight.size(-1), positions = x.size(0);
  const at::ScalarType wide = kernel_wide_type(x);
  const at::Tensor all = at::cat({before, x}, 0).to(wide);
  at::Tensor sum = kernel.bias.defined() ? kernel.bias.to(wide) : at::Tensor();
  for (int64_t j = 0; j < length; ++j) {
    at::Tensor term = all.narrow(0, j, positions) * kernel.weight.select(-1, j).squeeze(-1).to(wide);
    const int64_t back = length - 1 - j;
    if (segment_SB.defined() && back > 0 && back < positions) term = term * same_segment(segment_SB, back).to(wide);
    sum = sum.defined() ? sum + term : term;
  }
  return at::silu(sum).to(x.scalar_type());
}

at::Tensor zeros_before(const at::Tensor& x, const at::Tensor& weight) {
  return at::zeros({weight.size(-1) - 1, x.size(1), x.size(2)}, x.options());
}

}  // namespace

at::Tensor short_convolution(const at::Tensor& x, const ShortKernel& kernel, const at::Tensor& segment_SB) {
  const RerunCost cost{.forward = {.name = "short_convolution", .bytes = 2 * bytes_of(x)},
                       .backward = {.name = "short_convolution_backward", .bytes = 3 * bytes_of(x)},
                       .dtype = dtype_of(x)};
  std::vector<at::Tensor> inputs = {x, kernel.weight};
  if (kernel.bias.defined()) inputs.push_back(kernel.bias);
  return rerun_function(
      [segment_SB](const std::vector<at::Tensor>& in) {
        const ShortKernel own{in[1], in.size() > 2 ? in[2] : at::Tensor()};
        return convolved(zeros_before(in[0], in[1]), in[0], own, segment_SB);
      },
      inputs, cost);
}

at::Tensor short_convolution_after(const at::Tensor& x, const ShortKernel& kernel, at::Tensor& past) {
  const CostScope cost("short_convolution", 0.0, 2 * bytes_of(x), dtype_of(x));
  const at::Tensor out = convolved(past, x, kernel, {});
  const at::Tensor all = at::cat({past, x}, 0);
  past = all.narrow(0, all.size(0) - past.size(0), past.size(0)).clone();
  return out;
}

}  // namespace ranklab
