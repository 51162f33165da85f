#include "core/nn/activation.h"

#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/kernels/row_kernels.h"
#include "core/nn/recomputable_output.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

struct SwigluFunction : CustomFunction<SwigluFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up_in) {
    const at::Tensor gate_up = gate_up_in.contiguous();
    const int64_t width = gate_up.size(-1) / 2;
    auto sizes = gate_up.sizes().vec();
    sizes.back() = width;
    at::Tensor out = at::empty(sizes, gate_up.options());
    const CostScope cost("swiglu", 0.0, 1.5 * bytes_of(gate_up), dtype_of(gate_up));
    const kernels::RowShape shape{out.numel() / width, width};
    if (const DeviceKernels* device = device_kernels_of(gate_up)) {
      device->swiglu({device_number(gate_up), shape, device_in(gate_up), device_out(out)});
    } else {
      for_kernel_type(gate_up,
                      [&]<typename T>() { kernels::swiglu_forward(shape, kernel_in<T>(gate_up), kernel_out<T>(out)); });
    }
    ctx->save_for_backward({gate_up});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {swiglu_grad(grads[0].contiguous(), ctx->get_saved_variables()[0])};
  }
};

// Saves only its input for backward.
struct GegluFunction : CustomFunction<GegluFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up) {
    const CostScope cost("geglu", 0.0, 1.5 * bytes_of(gate_up), dtype_of(gate_up));
    ctx->save_for_backward({gate_up});
    const auto halves = gate_up.chunk(2, -1);
    return at::gelu(halves[0], "tanh") * halves[1];
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor gate_up = ctx->get_saved_variables()[0];
    const CostScope cost("geglu_backward", 0.0, 2.5 * bytes_of(gate_up), dtype_of(gate_up));
    const auto halves = gate_up.chunk(2, -1);
    return {at::cat(
        {at::gelu_backward(grads[0] * halves[1], halves[0], "tanh"), grads[0] * at::gelu(halves[0], "tanh")}, -1)};
  }
};

// Saves only its input for backward.
struct SwigluOaiFunction : CustomFunction<SwigluOaiFunction> {
  static constexpr double kSlope = 1.702, kBound = 7;

  struct Halves {
    at::Tensor gate, up, sigmoid;  // clamped, in the type of the computation
  };
  static Halves bounded(const std::vector<at::Tensor>& halves) {
    const at::ScalarType wide = kernel_wide_type(halves[0]);
    const at::Tensor gate = halves[0].to(wide).clamp_max(kBound);
    return {gate, halves[1].to(wide).clamp(-kBound, kBound), at::sigmoid(gate * kSlope)};
  }

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_up) {
    const CostScope cost("swiglu", 0.0, 1.5 * bytes_of(gate_up), dtype_of(gate_up));
    ctx->save_for_backward({gate_up});
    const auto [gate, up, sigmoid] = bounded(gate_up.chunk(2, -1));
    return ((up + 1) * gate * sigmoid).to(gate_up.scalar_type());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor gate_up = ctx->get_saved_variables()[0];
    const CostScope cost("swiglu_backward", 0.0, 2.5 * bytes_of(gate_up), dtype_of(gate_up));
    const auto halves = gate_up.chunk(2, -1);
    const auto [gate, up, sigmoid] = bounded(halves);
    const at::Tensor grad = grads[0].to(gate.scalar_type());
    // d (g s(a g)) = s + a g s (1 - s), where s is the sigmoid; 0 where a clamp is active.
    const at::Tensor slope = sigmoid + gate * sigmoid * (1 - sigmoid) * kSlope;
    const at::Tensor d_gate = (grad * (up + 1) * slope).masked_fill_(halves[0].gt(kBound), 0);
    const at::Tensor d_up = (grad * gate * sigmoid).masked_fill_(halves[1].abs().gt(kBound), 0);
    return {at::cat({d_gate, d_up}, -1).to(gate_up.scalar_type())};
  }
};

// Saves only its input for backward.
struct SquaredReluFunction : CustomFunction<SquaredReluFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x) {
    const CostScope cost("squared_relu", 0.0, 2.0 * bytes_of(x), dtype_of(x));
    ctx->save_for_backward({x});
    at::Tensor above = x.clamp_min(0);
    return above.mul_(above);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    const CostScope cost("squared_relu_backward", 0.0, 3.0 * bytes_of(x), dtype_of(x));
    return {x.clamp_min(0).mul_(2).mul_(grads[0])};
  }
};

}  // namespace

at::Tensor swiglu_grad(const at::Tensor& grad_out, const at::Tensor& gate_up) {
  at::Tensor grad = at::empty_like(gate_up);
  const int64_t width = gate_up.size(-1) / 2;
  const CostScope cost("swiglu_backward", 0.0, 2.5 * bytes_of(gate_up), dtype_of(gate_up));
  const kernels::RowShape shape{grad_out.numel() / width, width};
  if (const DeviceKernels* device = device_kernels_of(gate_up)) {
    device->swiglu_grad(
        {device_number(gate_up), shape, device_in(gate_up), nullptr, device_in(grad_out), device_out(grad)});
  } else {
    for_kernel_type(gate_up, [&]<typename T>() {
      kernels::swiglu_backward(shape, kernel_in<T>(grad_out), kernel_in<T>(gate_up), kernel_out<T>(grad));
    });
  }
  return grad;
}

at::Tensor swiglu_grad_and_recompute(const at::Tensor& grad_out, const at::Tensor& gate_up) {
  at::Tensor grad = at::empty_like(gate_up);
  const int64_t width = gate_up.size(-1) / 2;
  { const CostScope forward("swiglu", 0.0, 1.5 * bytes_of(gate_up), dtype_of(gate_up)); }
  const CostScope cost("swiglu_backward", 0.0, 2.5 * bytes_of(gate_up), dtype_of(gate_up));
  const kernels::RowShape shape{grad_out.numel() / width, width};
  if (const DeviceKernels* device = device_kernels_of(gate_up)) {
    device->swiglu_grad(
        {device_number(gate_up), shape, device_in(gate_up), nullptr, device_in(grad_out), device_out(grad)});
    device->swiglu({device_number(gate_up), shape, device_in(gate_up), device_out(grad_out)});
    return grad;
  }
  for_kernel_type(gate_up, [&]<typename T>() {
    T* const out = kernel_out<T>(grad_out);
    kernels::swiglu_backward(shape, out, kernel_in<T>(gate_up), kernel_out<T>(grad), out);
  });
  return grad;
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  return has_row_kernels(gate_up) ? SwigluFunction::apply(gate_up) : swiglu_reference(gate_up);
}

at::Tensor swiglu_reference(const at::Tensor& gate_up) {
  const CostScope cost("swiglu", 0.0, 1.5 * bytes_of(gate_up), dtype_of(gate_up));
  const auto halves = gate_up.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

at::Tensor gelu_tanh(const at::Tensor& x) { return at::gelu(x, "tanh"); }

at::Tensor gelu_erf(const at::Tensor& x) { return at::gelu(x, "none"); }

at::Tensor squared_relu(const at::Tensor& x) { return SquaredReluFunction::apply(x); }

at::Tensor swiglu_oai(const at::Tensor& gate_up) { return SwigluOaiFunction::apply(gate_up); }

at::Tensor geglu(const at::Tensor& gate_up) { return GegluFunction::apply(gate_up); }

at::Tensor soft_capped(const at::Tensor& x, double cap) { return at::tanh(x / cap) * cap; }

Activated activate(at::Tensor (*compute)(const at::Tensor&), const at::Tensor& input) {
  if (keeps_cheap_outputs()) return {compute(input)};
  return {compute(input), input.detach(), compute};
}

Activated swiglu_charged_twice(const at::Tensor& gate_up) {
  Activated inner = activate(swiglu, gate_up);
  if (inner.compute != nullptr) return inner;
  inner.input = inner.out.detach();
  inner.compute = [](const at::Tensor& out) {
    const CostScope cost("swiglu", 0.0, 3 * bytes_of(out), dtype_of(out));  // reads twice as much as it writes
    return out;
  };
  return inner;
}

at::Tensor (*activation_function(ActivationKind kind))(const at::Tensor&) {
  switch (kind) {
    case ActivationKind::kSwiGlu:
      return swiglu;
    case ActivationKind::kGelu:
      return gelu_tanh;
    case ActivationKind::kGeluErf:
      return gelu_erf;
    case ActivationKind::kGeGlu:
      return geglu;
    case ActivationKind::kSquaredRelu:
      return squared_relu;
    case ActivationKind::kSwiGluOai:
      return swiglu_oai;
  }
  return nullptr;
}

}  // namespace ranklab
