#include "core/nn/output_gate.h"

#include "core/nn/kernels/kernel_path.h"
#include "core/nn/rerun_function.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// Forward reads two tensors and writes one; backward reads three and writes two.
RerunCost cost_of(const at::Tensor& x, const char* name, const char* backward_name) {
  return {.forward = {.name = name, .bytes = 3 * bytes_of(x)},
          .backward = {.name = backward_name, .bytes = 5 * bytes_of(x)},
          .dtype = dtype_of(x)};
}

}  // namespace

RecomputableOutput sigmoid_gated(const at::Tensor& x, const at::Tensor& gate) {
  const auto function = [](const std::vector<at::Tensor>& in) {
    const at::ScalarType wide = kernel_wide_type(in[0]);
    return (in[0].to(wide) * at::sigmoid(in[1].to(wide))).to(in[0].scalar_type());
  };
  return recomputable_function(function, {x, gate}, cost_of(x, "sigmoid_gate", "sigmoid_gate_backward"));
}

RecomputableOutput gated_head_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                                   double epsilon) {
  const auto function = [epsilon](const std::vector<at::Tensor>& in) {
    const at::ScalarType wide = kernel_wide_type(in[0]);
    const at::Tensor heads = in[0].to(wide).unflatten(-1, {-1, in[2].size(0)});
    const at::Tensor inv_rms = (heads.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt();
    const at::Tensor normed = (heads * inv_rms * in[2].to(wide)).flatten(-2);
    return (normed * at::silu(in[1].to(wide))).to(in[0].scalar_type());
  };
  return recomputable_function(function, {x, gate, weight}, cost_of(x, "gated_norm", "gated_norm_backward"));
}

RecomputableOutput gated_group_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                                    int64_t groups, double epsilon) {
  const auto function = [groups, epsilon](const std::vector<at::Tensor>& in) {
    const at::ScalarType wide = kernel_wide_type(in[0]);
    const at::Tensor gated = (in[0].to(wide) * at::silu(in[1].to(wide))).unflatten(-1, {groups, -1});
    const at::Tensor inv_rms = (gated.square().mean(-1, /*keepdim=*/true) + epsilon).rsqrt();
    return ((gated * inv_rms).flatten(-2) * in[2].to(wide)).to(in[0].scalar_type());
  };
  return recomputable_function(function, {x, gate, weight}, cost_of(x, "gated_norm", "gated_norm_backward"));
}

}  // namespace ranklab
