#include "core/model/mtp.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/model/recompute.h"
#include "core/nn/custom_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

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
                                           const VocabParallelEmbedding& embedding, bool recompute)
    : tp_(context.tp), embedding_(embedding), recompute_(recompute) {
  const bool sharded = tp_.sharded_sequence();
  const PredictionSpec spec = prediction_spec(c);
  const ModuleScope first = scope["mtp"]["0"];
  for (int64_t k = 0; k < c.mtp_num_layers; ++k) {
    const ModuleScope own = scope["mtp"][std::to_string(k)];
    // Uses of a repeated module have a path each, so that hooks tell them apart and dropout draws for each.
    const ModuleScope module = c.mtp_module(k) == k ? own : own.with_parameters_of(first);
    const ModelUnit around = scope.registry().unit();  // the last stage's, or of a stage of its own
    scope.registry().begin_unit({.name = module.path(), .place = around.place});
    BlockContext block_context = context;
    block_context.layer = c.mtp_layer(k);
    // In the order of the forward.
    Norm embedding_norm(module, spec.embedding_norm, c, sharded), state_norm(module, spec.state_norm, c, sharded);
    ReplicatedLinear projection(module, spec.projection, tp_);
    TransformerBlock block(module["block"], c, block_context);
    modules_.push_back({embedding_norm, state_norm, projection, std::move(block), Norm(module, spec.norm, c, sharded),
                        ModuleUse(module)});
    scope.registry().begin_unit(around);
  }
}

void MultiTokenPrediction::each_state(const at::Tensor& state_SBH, const ForwardContext& context,
                                      const Use& use) const {
  RANKLAB_CHECK(context.batch.tokens_BS.defined(), ErrorKind::kInternal, .where = "multi-token prediction",
                .what = "the stage of the modules needs the tokens of the batch");
  at::Tensor state = state_SBH;
  for (size_t k = 0; k < modules_.size(); ++k) {
    const int64_t ahead = static_cast<int64_t>(k) + 1;
    const at::Tensor own = modules_[k].use.own(state);
    NormOutput out;
    modules_[k].use(context, own, [&] {
      out = state_of(modules_[k], ahead, own, context);
      return out.normed;
    });
    use(ahead, out);
    state = out.normed;
  }
}

NormOutput MultiTokenPrediction::state_of(const Module& module, int64_t ahead, const at::Tensor& state_SBH,
                                          const ForwardContext& context) const {
  const at::Tensor tokens_BS = context.own_positions(shifted(context.batch.tokens_BS, ahead, 0));
  const at::Tensor embedded = embedding_(tokens_BS.t(), context.tokens);
  ResidualStream stream{
      module.projection(at::cat({module.embedding_norm(embedded).normed, module.state_norm(state_SBH).normed}, -1),
                        context.tokens),
      {}};
  const Piece block = [&of = module.block](ResidualStream& s, const ForwardContext& c) { of.forward(s, c); };
  recompute_ ? recomputed(block, stream, context, module.block.shared_weights()) : block(stream, context);
  return module.norm(stream.x_SBH, stream.branch_SBH);
}

at::Tensor mtp_loss_sum(const OutputHead& head, const NormOutput& state, int64_t ahead, const ForwardContext& context) {
  const at::Tensor targets_BS = context.own_positions(shifted(context.batch.targets_BS, ahead, kIgnoreTarget));
  return head.loss_sum(head(state, context.tokens), targets_BS);
}

at::Tensor with_further_loss(const at::Tensor& loss, const at::Tensor& further, double weight) {
  return FurtherLoss::apply(loss, further, weight);
}

}  // namespace ranklab
