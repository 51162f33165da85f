#include "core/parallel/context/head_exchange.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/comm/purpose.h"
#include "core/nn/custom_function.h"
#include "core/parallel/context/attention_trace.h"
#include "core/parallel/context/position_order.h"
#include "core/parallel/saved_group.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor to_all_positions(const at::Tensor& x, const ContextParallel& cp, AttentionPass pass) {
  const int64_t own = x.size(0), batch = x.size(1), width = x.size(2) / cp.size();
  const at::Tensor by_rank = x.reshape({own, batch, cp.size(), width}).permute({2, 0, 1, 3}).contiguous();
  const PurposeScope scope(Purpose::kHeads);
  const at::Tensor arrived = cp.comm->all_to_all(by_rank.view({cp.size() * own, batch, width}));
  at::Tensor ordered = in_position_order(arrived, cp.size(), cp.split.balance);
  begin_own_heads(cp, ordered.size(0), pass);
  return ordered;
}

at::Tensor to_all_heads(const at::Tensor& x, const ContextParallel& cp) {
  end_own_heads(cp);
  const int64_t own = x.size(0) / cp.size(), batch = x.size(1), width = x.size(2);
  const PurposeScope scope(Purpose::kHeads);
  const at::Tensor arrived =
      cp.comm->all_to_all(rank_after_rank(x.contiguous(), cp.size(), cp.split.balance).contiguous());
  return arrived.view({cp.size(), own, batch, width}).permute({1, 2, 0, 3}).reshape({own, batch, cp.size() * width});
}

void save_context(AutogradContext* ctx, const ContextParallel& cp) {
  save_group(ctx, *cp.comm);
  ctx->saved_data["exchange"] = static_cast<int64_t>(cp.split.exchange);
  ctx->saved_data["balance"] = static_cast<int64_t>(cp.split.balance);
}
ContextParallel saved_context(AutogradContext* ctx) {
  return {&saved_group(ctx),
          {static_cast<ContextExchange>(ctx->saved_data["exchange"].toInt()),
           static_cast<SequenceBalance>(ctx->saved_data["balance"].toInt())}};
}

struct HeadsOfAllPositions : CustomFunction<HeadsOfAllPositions> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const ContextParallel& cp) {
    save_context(ctx, cp);
    return to_all_positions(x, cp, AttentionPass::kForward);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {to_all_heads(grads[0], saved_context(ctx)), {}};
  }
};

struct PositionsOfAllHeads : CustomFunction<PositionsOfAllHeads> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const ContextParallel& cp) {
    save_context(ctx, cp);
    return to_all_heads(x, cp);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {to_all_positions(grads[0], saved_context(ctx), AttentionPass::kBackward), {}};
  }
};

struct GatherPositions : CustomFunction<GatherPositions> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const ContextParallel& cp) {
    save_context(ctx, cp);
    const PurposeScope scope(Purpose::kKeyValue);
    return in_position_order(cp.comm->all_gather(x.contiguous()), cp.size(), cp.split.balance);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const ContextParallel cp = saved_context(ctx);
    const PurposeScope scope(Purpose::kKeyValueGrad);
    return {cp.comm->reduce_scatter(rank_after_rank(grads[0], cp.size(), cp.split.balance).contiguous()), {}};
  }
};

}  // namespace

at::Tensor heads_of_all_positions(const at::Tensor& x, const ContextParallel& cp) {
  return cp.active() ? HeadsOfAllPositions::apply(x, cp) : x;
}
at::Tensor positions_of_all_heads(const at::Tensor& x, const ContextParallel& cp) {
  return cp.active() ? PositionsOfAllHeads::apply(x, cp) : x;
}
at::Tensor gather_positions(const at::Tensor& x, const ContextParallel& cp) {
  return cp.active() ? GatherPositions::apply(x, cp) : x;
}

AttentionShape shape_of_one_rank(const AttentionShape& shape, const ContextParallel& cp) {
  const int n = cp.size();
  if (n == 1) return shape;
  RANKLAB_CHECK(shape.heads % n == 0 && (shape.groups % n == 0 || n % shape.groups == 0), ErrorKind::kInvalidArgument,
                .where = "context parallelism", .what = "--cp-comm-type a2a splits heads, which do not divide",
                .got = std::to_string(shape.heads) + " heads, " + std::to_string(shape.groups) +
                       " key/value heads of a tp rank, --cp " + std::to_string(n),
                .want = "a multiple of --cp", .fix = "lower --cp, or use --cp-comm-type p2p or all_gather");
  AttentionShape one = shape;
  one.heads /= n;
  one.groups = std::max<int64_t>(shape.groups / n, 1);
  one.scale = shape.score_scale();
  return one;
}

at::Tensor exchange_qkv(const at::Tensor& qkv, const AttentionShape& shape, const ContextParallel& cp) {
  if (!cp.active()) return qkv;
  const int64_t own = qkv.size(0), batch = qkv.size(1), n = cp.size();
  const auto parts = qkv.split_with_sizes(
      {shape.heads * shape.head_dim, shape.groups * shape.head_dim, shape.groups * shape.head_dim}, -1);
  // A head is sent to each rank that reads it.
  const auto by_rank = [&](const at::Tensor& x, int64_t heads) {
    at::Tensor each = x;
    if (heads < n)
      each = x.reshape({own, batch, heads, 1, shape.head_dim}).expand({own, batch, heads, n / heads, shape.head_dim});
    return each.reshape({own, batch, n, -1});
  };
  const at::Tensor together =
      at::cat({by_rank(parts[0], shape.heads), by_rank(parts[1], shape.groups), by_rank(parts[2], shape.groups)}, -1);
  return heads_of_all_positions(together.reshape({own, batch, -1}), cp);
}

}  // namespace ranklab
