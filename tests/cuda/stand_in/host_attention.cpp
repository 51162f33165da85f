// The attention kernels of LibTorch's CUDA half, for the stand-in's GPUs: what they compute in plain operators of the
// host, with their results' layouts: heads by position, statistics of the memory-efficient kernel padded to 32 queries.
#include <ATen/ops/logsumexp.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "core/sim/aten.h"
#include "tests/cuda/stand_in/host_tensors.h"

namespace ranklab::stand_in {
namespace {

using at::Tensor;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using Scale = std::optional<double>;
using OptionalTensor = const std::optional<Tensor>&;

// Which keys a query sees: `left` before its own (none: all), and none behind it where `causal`.
struct Rule {
  bool causal = false;
  std::optional<int64_t> left = std::nullopt;
  Scale scale = std::nullopt;
};

Tensor with_heads(const Tensor& x, int64_t heads) { return x.repeat_interleave(heads / x.size(1), 1, heads); }

Tensor summed_heads(const Tensor& x, int64_t groups) {
  return x.reshape({x.size(0), groups, x.size(1) / groups, x.size(2), x.size(3)}).sum(2);
}

double scale_of(const Tensor& q, const Rule& rule) {
  return rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(3))));
}

// Of queries [B, heads, M, D] and as many heads of keys: [B, heads, M, N].
Tensor scores_of(const Tensor& q, const Tensor& k, const Rule& rule) {
  Tensor scores = q.matmul(k.transpose(-1, -2)) * scale_of(q, rule);
  const Tensor query = at::arange(q.size(2)).unsqueeze(1), key = at::arange(k.size(2));
  Tensor hidden = at::zeros({q.size(2), k.size(2)}, at::kBool);
  if (rule.causal || rule.left) hidden = key > query;
  if (rule.left) hidden = hidden.logical_or(key < query - *rule.left);
  return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
}

void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Rule& rule, Tensor out, Tensor log_sum_exp) {
  const int64_t heads = q.size(1);
  const Tensor scores = scores_of(q.to(at::kFloat), with_heads(k, heads).to(at::kFloat), rule);
  out.copy_(at::softmax(scores, -1).matmul(with_heads(v, heads).to(at::kFloat)));
  log_sum_exp.narrow(2, 0, q.size(2)).copy_(at::logsumexp(scores, {-1}));
}

struct Forward {
  Tensor q, k, v, out, log_sum_exp;
};

void attend_backward(const Tensor& grad_out, const Forward& f, const Rule& rule, Tensor dq, Tensor dk, Tensor dv) {
  const int64_t heads = f.q.size(1), groups = f.k.size(1);
  const auto wide = [&](const Tensor& x) { return with_heads(x, heads).to(at::kFloat); };
  const Tensor q = wide(f.q), k = wide(f.k), v = wide(f.v), out = wide(f.out), grad = grad_out.to(at::kFloat);
  const Tensor p = (scores_of(q, k, rule) - f.log_sum_exp.narrow(2, 0, q.size(2)).unsqueeze(-1)).exp();
  const Tensor ds = p * (grad.matmul(v.transpose(-1, -2)) - (grad * out).sum(-1, true)) * scale_of(q, rule);
  dq.copy_(ds.matmul(k));
  dk.copy_(summed_heads(ds.transpose(-1, -2).matmul(q), groups));
  dv.copy_(summed_heads(p.transpose(-1, -2).matmul(grad), groups));
}

// [B, heads, S, D], by position in memory.
Tensor by_position(const Tensor& like, int64_t width) {
  return at::empty({like.size(0), like.size(2), like.size(1), width}, like.options()).transpose(1, 2);
}

std::pair<Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v, const Rule& rule,
                                  int64_t padded_to) {
  const Tensor out = by_position(q, v.size(3));
  const Tensor sums = at::empty({q.size(0), q.size(1), (q.size(2) + padded_to - 1) / padded_to * padded_to},
                                q.options().dtype(at::kFloat));
  launch_on_host({q, k, v, out, sums},
                 [rule](const std::vector<Tensor>& t) { attend(t[0], t[1], t[2], rule, t[3], t[4]); });
  return {out, sums};
}

Three backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
               const Tensor& log_sum_exp, const Rule& rule) {
  const Tensor dq = by_position(q, q.size(3)), dk = by_position(k, k.size(3)), dv = by_position(v, v.size(3));
  launch_on_host({grad_out, q, k, v, out, log_sum_exp, dq, dk, dv}, [rule](const std::vector<Tensor>& t) {
    attend_backward(t[0], {t[1], t[2], t[3], t[4], t[5]}, rule, t[6], t[7], t[8]);
  });
  return {dq, dk, dv};
}

Four efficient(const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor /*bias*/, bool /*sums*/,
               double /*dropout*/, bool causal, Scale scale) {
  constexpr int64_t kQueriesTogether = 32;
  TORCH_CHECK(k.size(1) == q.size(1), "the memory-efficient kernel has a key head for each query head");
  const auto [out, sums] = forward(q, k, v, {.causal = causal, .scale = scale}, kQueriesTogether);
  const Tensor seed = at::zeros({}, q.options().dtype(at::kLong));
  return {out, sums, seed, seed};
}
Four efficient_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& /*bias*/, const Tensor& out, const Tensor& sums, const Tensor& /*seed*/,
                        const Tensor& /*offset*/, double /*dropout*/, std::array<bool, 4> /*wanted*/, bool causal,
                        Scale scale) {
  const auto [dq, dk, dv] = backward(grad_out, q, k, v, out, sums, {.causal = causal, .scale = scale});
  return {dq, dk, dv, Tensor()};
}

void check_16_bits(const Tensor& x) {
  TORCH_CHECK(x.itemsize() == 2, "flash attention is of 16-bit numbers");
  TORCH_CHECK(x.stride(-1) == 1, "flash attention reads dense rows");
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> flash(
    const Tensor& q, const Tensor& k, const Tensor& v, double /*dropout*/, bool causal, bool /*debug*/, Scale scale) {
  check_16_bits(q);
  const auto [out, sums] = forward(q, k, v, {.causal = causal, .scale = scale}, 1);
  return {out, sums, {}, {}, q.size(2), k.size(2), {}, {}, {}};
}
Three flash_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                     const Tensor& sums, const Tensor& /*cum_q*/, const Tensor& /*cum_k*/, int64_t /*max_q*/,
                     int64_t /*max_k*/, double /*dropout*/, bool causal, const Tensor& /*seed*/,
                     const Tensor& /*offset*/, Scale scale) {
  return backward(grad_out, q, k, v, out, sums, {.causal = causal, .scale = scale});
}

// cuDNN's statistics have one more dimension, and it takes no heads wider than 128.
std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> cudnn(
    const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor /*bias*/, bool /*sums*/, double /*dropout*/,
    bool causal, bool /*debug*/, Scale scale) {
  constexpr int64_t kWidest = 128;
  check_16_bits(q);
  TORCH_CHECK(q.size(3) <= kWidest && q.size(2) > 1, "cuDNN has no such attention");
  const auto [out, sums] = forward(q, k, v, {.causal = causal, .scale = scale}, 1);
  const Tensor seed = at::zeros({}, q.options().dtype(at::kLong));
  return {out, sums.unsqueeze(-1), {}, {}, q.size(2), k.size(2), seed, seed, {}};
}
Three cudnn_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                     const Tensor& sums, const Tensor& /*seed*/, const Tensor& /*offset*/, const Tensor& /*bias*/,
                     const Tensor& /*cum_q*/, const Tensor& /*cum_k*/, int64_t /*max_q*/, int64_t /*max_k*/,
                     double /*dropout*/, bool causal, Scale scale) {
  TORCH_CHECK(sums.dim() == 4, "cuDNN's own statistics");
  return backward(grad_out, q, k, v, out, sums.squeeze(-1), {.causal = causal, .scale = scale});
}

Tensor turned(const Tensor& x) { return x.transpose(1, 2); }

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_of_window(
    const Tensor& q, const Tensor& k, const Tensor& v, OptionalTensor /*cum_q*/, OptionalTensor /*cum_k*/,
    int64_t /*max_q*/, int64_t /*max_k*/, double /*dropout*/, bool causal, bool /*debug*/, Scale scale,
    std::optional<int64_t> left, std::optional<int64_t> /*right*/, OptionalTensor /*used*/, OptionalTensor /*alibi*/) {
  check_16_bits(q);
  const auto [out, sums] = forward(turned(q), turned(k), turned(v), Rule{causal, left, scale}, 1);
  return {turned(out), sums, {}, {}, {}};
}
Three flash_of_window_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k, const Tensor& v,
                               const Tensor& out, const Tensor& sums, const Tensor& /*cum_q*/, const Tensor& /*cum_k*/,
                               int64_t /*max_q*/, int64_t /*max_k*/, double /*dropout*/, bool causal,
                               const Tensor& /*rng*/, const Tensor& /*unused*/, Scale scale,
                               std::optional<int64_t> left, std::optional<int64_t> /*right*/) {
  const auto [dq, dk, dv] =
      backward(turned(grad_out), turned(q), turned(k), turned(v), turned(out), sums, Rule{causal, left, scale});
  return {turned(dq), turned(dk), turned(dv)};
}

// Attention in plain operators, where a model asks for no kernel in particular.
int64_t plain_choice(const Tensor&, const Tensor&, const Tensor&, OptionalTensor, double, bool, Scale, bool) {
  return 0;
}

TORCH_LIBRARY_IMPL(aten, CUDA, operators) {
  operators.impl("_scaled_dot_product_efficient_attention", TORCH_FN(efficient));
  operators.impl("_scaled_dot_product_efficient_attention_backward", TORCH_FN(efficient_backward));
  operators.impl("_scaled_dot_product_flash_attention", TORCH_FN(flash));
  operators.impl("_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_backward));
  operators.impl("_scaled_dot_product_cudnn_attention", TORCH_FN(cudnn));
  operators.impl("_scaled_dot_product_cudnn_attention_backward", TORCH_FN(cudnn_backward));
  operators.impl("_flash_attention_forward", TORCH_FN(flash_of_window));
  operators.impl("_flash_attention_backward", TORCH_FN(flash_of_window_backward));
  operators.impl("_fused_sdp_choice", TORCH_FN(plain_choice));
}

}  // namespace
}  // namespace ranklab::stand_in
