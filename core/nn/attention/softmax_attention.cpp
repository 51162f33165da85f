#include "core/nn/attention/softmax_attention.h"

#include <atomic>
#include <cmath>
#include <limits>

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/nn/activation.h"
#include "core/nn/attention/attention_sinks.h"
#include "core/nn/attention/cpu_flash_attention.h"
#include "core/nn/attention/max_logit.h"
#include "core/nn/attention/tiled_attention.h"
#include "core/nn/attention/window_attention.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/precision/device_rounding.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

std::atomic<GpuAttention> g_gpu_attention{GpuAttention::kAuto};

SoftmaxHeads with_all_heads(const SoftmaxHeads& in) {
  const int64_t heads = in.q.size(1);
  return {in.q, repeat_groups(in.k, heads), repeat_groups(in.v, heads)};
}

bool is_short(int64_t window, const at::Tensor& q) { return window > 0 && window < q.size(2); }

SoftmaxedHeads on_cpu(const SoftmaxHeads& in, std::optional<double> scale, int64_t window) {
  const int64_t heads = in.q.size(1);
  if (is_short(window, in.q))
    return window_attention({in.q, repeat_groups(in.k, heads), repeat_groups(in.v, heads)}, window, scale);
  return cpu_flash_attention({in.q, repeat_groups(in.k, heads), repeat_groups(in.v, heads)}, {.scale = scale});
}

SoftmaxHeads grad_on_cpu(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                         std::optional<double> scale, int64_t window) {
  const int64_t heads = in.q.size(1), groups = in.k.size(1);
  const SoftmaxHeads repeated{in.q, repeat_groups(in.k, heads), repeat_groups(in.v, heads)};
  const SoftmaxHeads d = is_short(window, in.q)
                             ? window_attention_grad(repeated, forward, grad_out, window, scale)
                             : cpu_flash_attention_grad(repeated, forward, grad_out, {.scale = scale});
  return {d.q, sum_groups(d.k, groups), sum_groups(d.v, groups)};
}

// Placeholder for the random seed that dropout would need in backward.
at::Tensor no_seed(const at::Tensor& x) { return at::empty({2}, x.options().dtype(at::kUInt64)); }

SoftmaxedHeads by_flash(const SoftmaxHeads& in, std::optional<double> scale) {
  auto result = at::_scaled_dot_product_flash_attention(in.q, in.k, in.v, 0.0, true, false, scale);
  return {std::get<0>(result), std::get<1>(result)};
}

SoftmaxHeads grad_by_flash(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                           std::optional<double> scale) {
  const at::Tensor seed = no_seed(in.q);
  const auto [dq, dk, dv] =
      at::_scaled_dot_product_flash_attention_backward(grad_out, in.q, in.k, in.v, forward.out, forward.log_sum_exp, {},
                                                       {}, in.q.size(2), in.k.size(2), 0.0, true, seed, seed, scale);
  return {dq, dk, dv};
}

// [B, heads, S, D] as [B, S, heads, D], and back.
at::Tensor turned(const at::Tensor& x) { return x.transpose(1, 2); }

// Attention with a window, which only the kernel's low-level operator supports; it takes heads in [B, S, heads, D]. The
// window is a number of keys before the query and none after it.
SoftmaxedHeads by_flash_of_window(const SoftmaxHeads& in, const ScoreRule& rule) {
  auto result = at::_flash_attention_forward(turned(in.q), turned(in.k), turned(in.v), {}, {}, in.q.size(2),
                                             in.k.size(2), 0.0, true, false, rule.scale, rule.window - 1, 0);
  return {turned(std::get<0>(result)), std::get<1>(result)};
}

SoftmaxHeads grad_by_flash_of_window(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                     const ScoreRule& rule) {
  const at::Tensor seed = no_seed(in.q);
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      turned(grad_out), turned(in.q), turned(in.k), turned(in.v), turned(forward.out), forward.log_sum_exp, {}, {},
      in.q.size(2), in.k.size(2), 0.0, true, seed, seed, rule.scale, rule.window - 1, 0);
  return {turned(dq), turned(dk), turned(dv)};
}

// For fp32, which flash attention does not support (Rabe & Staats 2021, arXiv 2112.05682; it sums in full fp32). It
// needs one key/value head per query head, so grouped heads are repeated.
SoftmaxedHeads by_efficient(const SoftmaxHeads& in, std::optional<double> scale) {
  const int64_t heads = in.q.size(1);
  auto result = at::_scaled_dot_product_efficient_attention(
      in.q, repeat_groups(in.k, heads), repeat_groups(in.v, heads), {}, /*compute_log_sumexp=*/true, 0.0, true, scale);
  return {std::get<0>(result), std::get<1>(result)};
}

SoftmaxHeads grad_by_efficient(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                               std::optional<double> scale) {
  const int64_t heads = in.q.size(1), groups = in.k.size(1);
  const at::Tensor seed = at::zeros({}, in.q.options().dtype(at::kLong));
  const auto [dq, dk, dv, dbias] = at::_scaled_dot_product_efficient_attention_backward(
      grad_out, in.q, repeat_groups(in.k, heads), repeat_groups(in.v, heads), {}, forward.out, forward.log_sum_exp,
      seed, seed, 0.0, {true, true, true, false}, true, scale);
  return {dq, sum_groups(dk, groups), sum_groups(dv, groups)};
}

SoftmaxedHeads by_cudnn(const SoftmaxHeads& in, std::optional<double> scale) {
  auto result = at::_scaled_dot_product_cudnn_attention(in.q, in.k, in.v, {}, true, 0.0, true, false, scale);
  return {std::get<0>(result), std::get<1>(result)};
}

SoftmaxHeads grad_by_cudnn(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                           std::optional<double> scale) {
  const at::Tensor seed = at::zeros({}, in.q.options().dtype(at::kLong));
  const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
      grad_out, in.q, in.k, in.v, forward.out, forward.log_sum_exp, seed, seed, {}, {}, {}, in.q.size(2), in.k.size(2),
      0.0, true, scale);
  return {dq, dk, dv};
}

// Plain attention recorded by autograd, where there is no fused kernel.
SoftmaxedHeads followed(const SoftmaxHeads& in, const ScoreRule& rule, bool for_backward) {
  if (!for_backward) return {plain_attention(with_all_heads(in), rule), {}};
  const at::AutoGradMode follow(true);
  const auto leaf = [](const at::Tensor& x) { return x.detach().requires_grad_(true); };
  const SoftmaxHeads leaves{leaf(in.q), leaf(in.k), leaf(in.v)};
  const at::Tensor out = plain_attention(with_all_heads(leaves), rule);
  return {out.detach(), {}, {leaves, out}};
}

SoftmaxHeads grad_of_followed(const FollowedHeads& forward, const at::Tensor& grad_out) {
  const auto d = torch::autograd::grad({forward.out}, {forward.in.q, forward.in.k, forward.in.v}, {grad_out});
  return {d[0], d[1], d[2]};
}

// Measured with `ranklab bench kernels` on an H100 at llama_1b's shapes: 1.6 times as fast as flash attention, forward
// and backward. For short sequences the gain does not repay cuDNN's planning for every new shape.
bool cudnn_is_faster(const at::Tensor& q) {
  constexpr int kLongEnough = 1024;
  return q.size(2) >= kLongEnough && (q.size(3) == 64 || q.size(3) == 128) && device_rounding() != nullptr &&
         device_rounding()->capability() >= kHopperCapability && !at::globalContext().deterministicAlgorithms();
}

// Whether a device other than a plain CPU has a kernel for these heads; with a window only flash attention does.
bool is_fused(const at::Tensor& q, const ScoreRule& rule) {
  return has_softmax_attention(q, q.size(3)) && (!rule.has_window(q.size(2)) || (q.is_cuda() && q.itemsize() == 2));
}

// Whether plain ops on tiles of queries are used, because no kernel here supports the rule.
bool is_tiled(const at::Tensor& q, const ScoreRule& rule) {
  return rule.cap > 0 || (rule.sinks.defined() && !as_on_cpu(q) && !is_fused(q, rule));
}

// cuDNN supports neither single queries nor heads wider than 128.
bool takes_cudnn(const at::Tensor& q) {
  if (gpu_attention() == GpuAttention::kAuto) return cudnn_is_faster(q);
  return gpu_attention() == GpuAttention::kCudnn && q.size(2) > 1 && q.size(3) <= 128;
}

// The softmax over keys, without sinks.
SoftmaxedHeads over_keys(const SoftmaxHeads& in, const ScoreRule& rule, bool for_backward) {
  if (is_tiled(in.q, rule)) return tiled_attention(with_all_heads(in), rule);
  note_max_logits(in, causal_band(rule, in.q.size(2)), rule);
  if (as_on_cpu(in.q)) return on_cpu(in, rule.scale, rule.window);
  if (!is_fused(in.q, rule)) return followed(in, rule, for_backward);
  if (in.q.is_cpu()) return on_cpu(in, rule.scale, 0);  // where tests registered kernels for a CPU, as for a device
  if (in.q.scalar_type() == at::kFloat) return by_efficient(in, rule.scale);
  if (rule.has_window(in.q.size(2))) return by_flash_of_window(in, rule);
  return takes_cudnn(in.q) ? by_cudnn(in, rule.scale) : by_flash(in, rule.scale);
}

}  // namespace

GpuAttention gpu_attention_named(std::string_view backend) {
  if (backend == "fused") return GpuAttention::kCudnn;
  if (backend == "flash") return GpuAttention::kFlash;
  return backend == "unfused" ? GpuAttention::kUnfused : GpuAttention::kAuto;
}
void use_gpu_attention(GpuAttention kernel) { g_gpu_attention = kernel; }
GpuAttention gpu_attention() { return g_gpu_attention; }

at::Tensor repeat_groups(const at::Tensor& x, int64_t heads) {
  const int64_t groups = x.size(1);
  if (groups == heads) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), groups, heads / groups, x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

at::Tensor sum_groups(const at::Tensor& x, int64_t groups) {
  if (groups == x.size(1)) return x;
  return x.reshape({x.size(0), groups, x.size(1) / groups, x.size(2), x.size(3)}).sum(2);
}

at::Tensor by_position(const at::Tensor& x) {
  return x.permute({2, 0, 1, 3}).reshape({x.size(2), x.size(0), x.size(1) * x.size(3)}).contiguous();
}

bool has_softmax_attention(const at::Tensor& x, int64_t head_dim) {
  if (!x.is_cuda()) return x.is_cpu() || x.is_meta();
  constexpr int64_t kBytesTogether = 16, kWidest = 256;  // limits of flash attention's kernels
  if (head_dim * x.itemsize() % kBytesTogether != 0) return false;
  return x.itemsize() == 2 ? head_dim <= kWidest : x.scalar_type() == at::kFloat;
}

SoftmaxedHeads softmax_attention(const SoftmaxHeads& in, const ScoreRule& rule, bool for_backward) {
  SoftmaxedHeads result = over_keys(in, rule, for_backward);
  if (!rule.sinks.defined()) return result;
  report_kernel_results(result, in.q);
  join_sinks(result, rule.sinks);
  return result;
}

SoftmaxHeads softmax_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                    const ScoreRule& rule) {
  if (is_tiled(in.q, rule)) {
    const SoftmaxHeads d = tiled_attention_grad(with_all_heads(in), forward, grad_out, rule);
    return {d.q, sum_groups(d.k, in.k.size(1)), sum_groups(d.v, in.k.size(1))};
  }
  if (as_on_cpu(in.q)) return grad_on_cpu(in, forward, grad_out, rule.scale, rule.window);
  if (forward.followed.defined()) return grad_of_followed(forward.followed, grad_out);
  if (in.q.is_cpu()) return grad_on_cpu(in, forward, grad_out, rule.scale, 0);
  if (in.q.scalar_type() == at::kFloat) return grad_by_efficient(in, forward, grad_out, rule.scale);
  if (rule.has_window(in.q.size(2))) return grad_by_flash_of_window(in, forward, grad_out, rule);
  return takes_cudnn(in.q) ? grad_by_cudnn(in, forward, grad_out, rule.scale)
                           : grad_by_flash(in, forward, grad_out, rule.scale);
}

at::Tensor plain_attention(const SoftmaxHeads& in, const ScoreRule& rule) {
  if (rule.cap > 0 || rule.sinks.defined()) return softmax_attention_reference(in, rule);
  const int64_t seq = in.q.size(2);
  if (!rule.has_window(seq)) return at::scaled_dot_product_attention(in.q, in.k, in.v, {}, 0.0, true, rule.scale);
  const at::Tensor seen = window_mask(0, seq, 0, seq, rule.window, in.q.device());
  return at::scaled_dot_product_attention(in.q, in.k, in.v, seen, 0.0, false, rule.scale);
}

at::Tensor softmax_attention_reference(const SoftmaxHeads& in, const ScoreRule& rule) {
  const int64_t seq = in.q.size(2);
  const double scale = rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(in.q.size(3))));
  at::Tensor scores = at::matmul(in.q, in.k.transpose(-1, -2)) * scale;
  if (rule.cap > 0) scores = soft_capped(scores, rule.cap);
  const at::Tensor seen = window_mask(0, seq, 0, seq, rule.has_window(seq) ? rule.window : seq, in.q.device());
  const double hidden = -std::numeric_limits<double>::infinity();
  return at::matmul(softmax_with_sinks(scores.masked_fill(seen.logical_not(), hidden), rule.sinks), in.v);
}

}  // namespace ranklab
