#include "core/model/mtp.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/model/recompute.h"
#include "core/nn/custom_function.h"
#include "core/parallel/tensor/vocab_cross_entropy.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

// [B, S] shifted left by `by`, filled with `fill` at the end.
at::Tensor shifted(const at::Tensor& x_BS, int64_t by, int64_t fill) {
  const NoCostScope no_cost;
  const int64_t seq = x_BS.size(1), gone = std::min(by, seq);
  return at::constant_pad_nd(x_BS.narrow(1, gone, seq - gone), {0, gone}, fill);
}

struct FurtherLoss : CustomFunction<FurtherLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& loss, const at::Tensor& /*further*/,
                            double weight) {
    ctx->saved_data["weight"] = weight;
    return loss.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {grads[0], grads[0] * ctx->saved_data["weight"].toDouble(), {}};
  }
};

}  // namespace

MultiTokenPrediction::MultiTokenPrediction(const ModuleScope& scope, const ModelConfig& c, const BlockContext& context,
                                           const VocabParallelEmbedding& embedding, const OutputHead& head,
                                           bool recompute)
    : tp_(context.tp), embedding_(embedding), head_(head), recompute_(recompute) {
  const bool sharded = tp_.sharded_sequence();
  const PredictionSpec spec = prediction_spec(c);
  for (int64_t k = 0; k < c.mtp_num_layers; ++k) {
    const ModuleScope module = scope["mtp"][std::to_string(k)];
    const ModelUnit around = scope.registry().begin_unit({.name = module.path()});
    BlockContext block_context = context;
    block_context.layer = c.num_layers + k;
    // Created in the order of the forward.
    Norm embedding_norm(module, spec.embedding_norm, c, sharded), state_norm(module, spec.state_norm, c, sharded);
    ReplicatedLinear projection(module, spec.projection, tp_);
    TransformerBlock block(module["block"], c, block_context);
    modules_.push_back({embedding_norm, state_norm, projection, std::move(block), Norm(module, spec.norm, c, sharded),
                        ModuleUse(module)});
    scope.registry().begin_unit(around);
  }
}

at::Tensor MultiTokenPrediction::loss_sum(const at::Tensor& state_SBH, const ForwardContext& context) const {
  RANKLAB_CHECK(context.batch.tokens_BS.defined(), ErrorKind::kInternal, .where = "multi-token prediction",
                .what = "the last stage needs the tokens of the batch");
  at::Tensor state = state_SBH, sum;
  for (size_t k = 0; k < modules_.size(); ++k) {
    const at::Tensor input = state;
    const at::Tensor loss = modules_[k].use(
        context, input, [&] { return predict(modules_[k], static_cast<int64_t>(k) + 1, state, context); });
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

at::Tensor MultiTokenPrediction::predict(const Module& module, int64_t ahead, at::Tensor& state_SBH,
                                         const ForwardContext& context) const {
  const at::Tensor tokens_BS = context.own_positions(shifted(context.batch.tokens_BS, ahead, 0));
  const at::Tensor targets_BS = context.own_positions(shifted(context.batch.targets_BS, ahead, kIgnoreTarget));
  const at::Tensor embedded = embedding_(tokens_BS.t(), context.tokens);
  ResidualStream stream{
      module.projection(at::cat({module.embedding_norm(embedded).normed, module.state_norm(state_SBH).normed}, -1),
                        context.tokens),
      {}};
  const Piece block = [&of = module.block](ResidualStream& s, const ForwardContext& c) { of.forward(s, c); };
  recompute_ ? recomputed(block, stream, context) : block(stream, context);
  const NormOutput out = module.norm(stream.x_SBH, stream.branch_SBH);
  const at::Tensor logits_SBV = head_(out, context.tokens);
  const at::Tensor loss = vocab_parallel_cross_entropy(logits_SBV.view({-1, logits_SBV.size(2)}),
                                                       targets_BS.t().reshape({-1}), head_.partition(), tp_);
  state_SBH = out.normed;
  return loss;
}

at::Tensor with_further_loss(const at::Tensor& loss, const at::Tensor& further, double weight) {
  return FurtherLoss::apply(loss, further, weight);
}

}  // namespace ranklab
