#include "core/nn/attention/block_attention.h"

#include <cmath>
#include <limits>

#include "core/nn/attention/cpu_flash_attention.h"
#include "core/nn/attention/max_logit.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/charge_on_shapes.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

using Kind = AttentionBlock::Kind;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Returns x itself where the block has all rows, as most blocks do.
at::Tensor part(const at::Tensor& x, int64_t begin, int64_t count) {
  return count == x.size(2) ? x : x.narrow(2, begin, count);
}

// True where a query attends to a key; undefined for a full block.
at::Tensor attended(const AttentionBlock& b, at::Device device) {
  if (b.kind == Kind::kFull) return {};
  const auto options = at::TensorOptions(at::kLong).device(device);
  const at::Tensor query = at::arange(b.queries, options).unsqueeze(1), key = at::arange(b.keys, options);
  if (b.kind == Kind::kCausal) return key.le(query);
  return key.ge(query + b.band.first).logical_and(key.le(query + b.band.last));
}

KeyBand band_of(const AttentionBlock& b) {
  if (b.kind == Kind::kBand) return b.band;
  return {.first = -b.queries, .last = b.kind == Kind::kCausal ? 0 : b.keys};
}

double scale_of(const SoftmaxHeads& in, const ScoreRule& rule) {
  return rule.scale.value_or(1.0 / std::sqrt(static_cast<double>(in.q.size(3))));
}

SoftmaxHeads repeated_rows(const SoftmaxHeads& in, const AttentionBlock& b) {
  const SoftmaxHeads rows = rows_of_block(in, b);
  const int64_t heads = in.q.size(1);
  return {rows.q, repeat_groups(rows.k, heads), repeat_groups(rows.v, heads)};
}

// A triangle counts as half its square, as in attention.h.
double cost_pairs(const AttentionBlock& b) {
  return b.kind == Kind::kCausal ? 0.5 * static_cast<double>(b.queries * b.keys) : static_cast<double>(b.pairs());
}

CostScope cost_of(const char* kernel, const SoftmaxHeads& in, const AttentionBlock& b, double factor) {
  const auto heads = static_cast<double>(in.q.size(0) * in.q.size(1));
  const auto width = static_cast<double>(in.q.size(3) + in.v.size(3));
  const auto groups = static_cast<double>(in.q.size(0) * in.k.size(1));
  const double elements = 2 * heads * static_cast<double>(b.queries) + 2 * groups * static_cast<double>(b.keys);
  const auto queries = static_cast<double>(b.queries);
  KernelShape shape = KernelShape::attention(heads * queries, cost_pairs(b) / queries, width / 2);
  if (b.kind == Kind::kFull) shape = shape.of_square();
  return {{kernel, factor > 1 ? shape.of_backward() : shape},
          factor * 2 * cost_pairs(b) * heads * width,
          factor * elements * static_cast<double>(in.q.size(3) * in.q.itemsize()),
          dtype_of(in.q)};
}

// Scores in plain ops, in fp32 or fp64.
class PlainScores {
 public:
  PlainScores(const SoftmaxHeads& rows, const AttentionBlock& block, const ScoreRule& rule, const at::Tensor& kept)
      : rows_(rows),
        cap_(rule.cap),
        scale_(scale_of(rows, rule)),
        attended_(attended(block, rows.q.device())),
        kept_(kept) {
    const at::ScalarType wide = kernel_wide_type(rows.q);
    q_ = rows.q.to(wide), k_ = rows.k.to(wide), v_ = rows.v.to(wide);
    const at::Tensor products = at::matmul(q_, k_.transpose(-1, -2)).mul_(scale_);
    if (cap_ > 0) bounded_ = (products / cap_).tanh_();
    scores_ = cap_ > 0 ? bounded_ * cap_ : products;
    if (attended_.defined()) scores_ = scores_.masked_fill(attended_.logical_not(), kHidden);
  }

  const at::Tensor& scores() const { return scores_; }
  SoftmaxedHeads forward() const {
    const at::Tensor log_sum_exp = at::logsumexp(scores_, {-1});
    return {at::matmul(dropped((scores_ - log_sum_exp.unsqueeze(-1)).exp_()), v_), log_sum_exp};
  }

  SoftmaxHeads grad(const at::Tensor& out, const at::Tensor& log_sum_exp, const at::Tensor& grad_out) const {
    const at::Tensor grad = grad_out.to(q_.scalar_type());
    const at::Tensor weights = (scores_ - log_sum_exp.unsqueeze(-1)).exp_();
    const at::Tensor along = (grad * out.to(q_.scalar_type())).sum(-1, true);
    // With dropout, `along` is still the sum of weights times their gradients, because these gradients are dropped,
    // too.
    at::Tensor grad_scores = weights * (dropped(at::matmul(grad, v_.transpose(-1, -2))) - along) * scale_;
    if (cap_ > 0) grad_scores = grad_scores * (1 - bounded_ * bounded_);  // d tanh = 1 - tanh^2
    return {at::matmul(grad_scores, k_), at::matmul(grad_scores.transpose(-1, -2), q_),
            at::matmul(dropped(weights).transpose(-1, -2), grad)};
  }

 private:
  at::Tensor dropped(const at::Tensor& pairs) const { return kept_.defined() ? pairs * kept_ : pairs; }

  const SoftmaxHeads& rows_;
  double cap_, scale_;
  at::Tensor attended_, kept_, q_, k_, v_, bounded_, scores_;
};

// Whether the host has a fused kernel for this rule; the virtual clock charges for that kernel on every device.
bool is_fused_on_host(const ScoreRule& rule) { return gpu_attention() != GpuAttention::kUnfused && rule.cap <= 0; }

bool is_fused(const SoftmaxHeads& in, const AttentionBlock& block, const ScoreRule& rule) {
  if (!is_fused_on_host(rule)) return false;
  if (as_on_cpu(in.q)) return true;
  return block.kind != Kind::kBand && in.q.itemsize() == 2 && has_softmax_attention(in.q, in.q.size(3));
}

// The mask to be added to scores, if the block needs one.
std::optional<at::Tensor> added_mask(const AttentionBlock& block, const at::TensorOptions& options) {
  if (block.kind != Kind::kBand) return std::nullopt;
  const at::Tensor seen = attended(block, options.device());
  return at::zeros(seen.sizes(), options).masked_fill_(seen.logical_not(), kHidden);
}

SoftmaxedHeads fused(const SoftmaxHeads& rows, const AttentionBlock& block, const ScoreRule& rule) {
  const bool causal = block.kind == Kind::kCausal;
  if (!rows.q.is_cuda()) return cpu_flash_attention(rows, {causal, added_mask(block, rows.q.options()), rule.scale});
  auto result = at::_scaled_dot_product_flash_attention(rows.q, rows.k, rows.v, 0.0, causal, false, rule.scale);
  return {std::get<0>(result), std::get<1>(result)};
}

SoftmaxHeads fused_grad(const SoftmaxHeads& rows, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                        const AttentionBlock& block, const ScoreRule& rule) {
  const bool causal = block.kind == Kind::kCausal;
  if (!rows.q.is_cuda()) {
    return cpu_flash_attention_grad(rows, forward, grad_out, {causal, added_mask(block, rows.q.options()), rule.scale});
  }
  const at::Tensor seed = at::empty({2}, rows.q.options().dtype(at::kUInt64));  // seed for dropout, which is off
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
      grad_out, rows.q, rows.k, rows.v, forward.out, forward.log_sum_exp.contiguous(), {}, {}, rows.q.size(2),
      rows.k.size(2), 0.0, causal, seed, seed, rule.scale);
  return {dq, dk, dv};
}

}  // namespace

at::Tensor queries_of_block(const at::Tensor& x, const AttentionBlock& b) { return part(x, b.query, b.queries); }

SoftmaxHeads rows_of_block(const SoftmaxHeads& in, const AttentionBlock& b) {
  return {queries_of_block(in.q, b), part(in.k, b.key, b.keys), part(in.v, b.key, b.keys)};
}

SoftmaxedHeads block_attention(const SoftmaxHeads& in, const AttentionBlock& block, const ScoreRule& rule,
                               const at::Tensor& kept) {
  const CostScope cost = cost_of("flash_attention", in, block, 1);
  const SoftmaxHeads rows = repeated_rows(in, block);
  const bool plain = kept.defined() || !is_fused(in, block, rule);
  if (!plain) {
    note_max_logits(rows_of_block(in, block), band_of(block), rule);
    return fused(rows, block, rule);
  }
  const PlainScores scores(rows, block, rule, kept);
  note_scores(scores.scores(), rule.max_logits);
  return scores.forward();
}

at::ScalarType charged_type(const at::Tensor& q, const ScoreRule& rule, const at::Tensor& kept) {
  return kept.defined() || !is_fused_on_host(rule) ? kernel_wide_type(q) : q.scalar_type();
}

SoftmaxHeads block_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                  const AttentionBlock& block, const ScoreRule& rule, const at::Tensor& kept) {
  const CostScope cost = cost_of("flash_attention_backward", in, block, 2.5);
  const SoftmaxHeads rows = repeated_rows(in, block);
  const SoftmaxedHeads own{queries_of_block(forward.out, block), queries_of_block(forward.log_sum_exp, block)};
  const at::Tensor grad = queries_of_block(grad_out, block);
  const bool plain = kept.defined() || !is_fused(in, block, rule);
  const SoftmaxHeads d = plain ? PlainScores(rows, block, rule, kept).grad(own.out, own.log_sum_exp, grad)
                               : fused_grad(rows, own, grad, block, rule);
  return {d.q, sum_groups(d.k, in.k.size(1)), sum_groups(d.v, in.k.size(1))};
}

void add_part(const at::Tensor& sum, const at::Tensor& part, at::ScalarType charged) {
  if (part.scalar_type() == charged) {
    sum.add_(part);
    return;
  }
  charge_on_shapes([&] { shape_of(sum).add_(shape_of(part, charged)); });
  const NoCostScope free;
  sum.add_(part);
}

}  // namespace ranklab
