#include "core/parallel/tensor/projection_norm.h"

#include "core/nn/custom_function.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/norm.h"
#include "core/nn/weight_gradient.h"
#include "core/parallel/saved_group.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

CostScope pass_cost(const char* kernel, const at::Tensor& qkv, int passes) {
  return {kernel, 0.0, passes * bytes_of(qkv), dtype_of(qkv)};
}

// Queries and keys in the type of the computation.
struct Halves {
  at::Tensor q, k;

  Halves times(const at::Tensor& q_weight, const at::Tensor& k_weight, double offset) const {
    return {q * (q_weight.to(q.scalar_type()) + offset), k * (k_weight.to(k.scalar_type()) + offset)};
  }
};

// Views of the projection if its type is the one used in the computation, else copies.
Halves halves_of(const at::Tensor& qkv, int64_t queries, int64_t keys) {
  const at::ScalarType wide = kernel_wide_type(qkv);
  return {qkv.narrow(-1, 0, queries).to(wide), qkv.narrow(-1, queries, keys).to(wide)};
}

// [2, S, B]: the dot products of queries and of keys per token, summed over all ranks' parts.
at::Tensor token_dots(const Halves& a, const Halves& b, const at::Tensor& qkv, Communicator& tp) {
  at::Tensor dots;
  {
    const CostScope cost = pass_cost("norm_amounts", qkv, 1);
    dots = at::stack({(a.q * b.q).sum(-1), (a.k * b.k).sum(-1)});
  }
  return tp.size() > 1 ? tp.all_reduce(dots) : dots;
}

struct ProjectionNormFunction : CustomFunction<ProjectionNormFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv, const at::Tensor& q_weight,
                            const at::Tensor& k_weight, const ProjectionNormNumbers& n, Communicator& tp) {
    const int64_t queries = q_weight.numel(), keys = k_weight.numel();
    const Halves x = halves_of(qkv, queries, keys);
    const at::Tensor squares = token_dots(x, x, qkv, tp);
    const CostScope cost = pass_cost("head_norm", qkv, 2);
    const auto inverse_rms = [&](int64_t kind, int64_t width) {
      return (squares[kind] / static_cast<double>(width) + n.epsilon).rsqrt();
    };
    const at::Tensor inv_q = inverse_rms(0, n.queries), inv_k = inverse_rms(1, n.keys);
    const at::Tensor out = at::empty_like(qkv, at::MemoryFormat::Contiguous);
    const Halves normed =
        Halves{x.q * inv_q.unsqueeze(-1), x.k * inv_k.unsqueeze(-1)}.times(q_weight, k_weight, n.offset);
    out.narrow(-1, 0, queries).copy_(normed.q);
    out.narrow(-1, queries, keys).copy_(normed.k);
    out.narrow(-1, queries + keys, keys).copy_(qkv.narrow(-1, queries + keys, keys));
    ctx->save_for_backward({qkv, q_weight, k_weight, inv_q, inv_k});
    ctx->saved_data["queries"] = n.queries;
    ctx->saved_data["keys"] = n.keys;
    ctx->saved_data["offset"] = n.offset;
    save_group(ctx, tp);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &qkv = saved[0], &q_weight = saved[1], &k_weight = saved[2];
    const int64_t queries = q_weight.numel(), keys = k_weight.numel();
    const Halves x = halves_of(qkv, queries, keys), grad = halves_of(grads[0], queries, keys);
    const Halves weighted = grad.times(q_weight, k_weight, ctx->saved_data["offset"].toDouble());
    const at::Tensor dots = token_dots(weighted, x, qkv, saved_group(ctx));
    const CostScope cost = pass_cost("head_norm_backward", qkv, 3);
    const at::Tensor grad_qkv = at::empty_like(qkv, at::MemoryFormat::Contiguous);
    const auto write = [&](int64_t kind, const at::Tensor& x_kind, const at::Tensor& grad_kind, const char* width) {
      const at::Tensor& inv = saved[3 + static_cast<size_t>(kind)];
      const at::Tensor along = dots[kind] * inv * inv / static_cast<double>(ctx->saved_data[width].toInt());
      const at::Tensor part = grad_qkv.narrow(-1, kind == 0 ? 0 : queries, x_kind.size(-1));
      part.copy_((grad_kind - x_kind * along.unsqueeze(-1)) * inv.unsqueeze(-1));
    };
    write(0, x.q, weighted.q, "queries");
    write(1, x.k, weighted.k, "keys");
    grad_qkv.narrow(-1, queries + keys, keys).copy_(grads[0].narrow(-1, queries + keys, keys));
    return {
        grad_qkv, weight_grad(q_weight, grad.q * x.q, saved[3]), weight_grad(k_weight, grad.k * x.k, saved[4]), {}, {}};
  }

  static at::Tensor weight_grad(const at::Tensor& weight, const at::Tensor& product, const at::Tensor& inv) {
    const at::Tensor out = empty_gradient(weight);
    return out.copy_((product * inv.unsqueeze(-1)).sum(at::IntArrayRef{0, 1}));
  }
};

}  // namespace

ProjectionNorm::ProjectionNorm(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& c,
                               TensorParallel tp)
    : q_(&scope.make_weight(spec.q_norm.value(), tp.rank(), tp.size())),
      k_(&scope.make_weight(spec.k_norm.value(), tp.rank(), tp.size())),
      numbers_{c.query_width(), c.kv_width(), c.norm_epsilon, c.norm_weight_offset()},
      tp_(tp) {}

at::Tensor ProjectionNorm::operator()(const at::Tensor& qkv) const {
  return ProjectionNormFunction::apply(qkv, q_->data, k_->data, numbers_, *tp_.comm);
}

}  // namespace ranklab
