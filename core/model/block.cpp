#include "core/model/block.h"

#include "core/base/error.h"
#include "core/model/max_logit_book.h"
#include "core/model/moe_layer.h"
#include "core/model/recompute.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

std::unique_ptr<MlpLayer> make_mlp(const ModuleScope& scope, const ModelConfig& c, const BlockContext& context) {
  if (!c.has_feed_forward(context.layer)) return nullptr;
  if (!c.is_moe_layer(context.layer)) return make_dense_mlp(scope, mlp_spec(c), c.activation, context.tp);
  RANKLAB_CHECK(context.moe != nullptr, ErrorKind::kInternal, .where = scope.path(),
                .what = "a layer with experts needs a MoeContext");
  return make_moe_layer(scope, c, context.layer, *context.moe, context.tp, context.cp);
}

RopeTable rope_of_layer(const ModelConfig& c, const BlockContext& context) {
  if (!c.has_rope(context.layer)) return {};
  return c.window_of_layer(context.layer) > 0 ? context.local_rope : context.rope;
}

AttentionContext attention_context(const ModelConfig& c, const BlockContext& context) {
  return {.linear = c.is_linear(context.layer),
          .mamba = c.is_mamba(context.layer),
          .rope = rope_of_layer(c, context),
          .tp = context.tp,
          .cp = context.cp.of_layer(context.layer),
          .kv = context.kv,
          .window = c.window_of_layer(context.layer),
          .chunk = c.chunk_of_layer(context.layer),
          .l2_norm = c.has_qk_l2_norm(context.layer),
          .temperature = c.has_query_temperature(context.layer) ? context.temperature : at::Tensor(),
          .max_logits = context.max_logits != nullptr ? context.max_logits->of_layer(context.layer) : at::Tensor(),
          .recompute = context.recompute.core_attention()};
}

std::unique_ptr<AttentionLayer> make_attention(const ModuleScope& scope, const ModelConfig& c,
                                               const BlockContext& context) {
  if (!c.has_attention(context.layer)) return nullptr;
  return make_attention_layer(scope, c, attention_context(c, context));
}

std::optional<Norm> make_norm(const ModuleScope& scope, const std::optional<ModuleSpec>& spec, const ModelConfig& c,
                              const BlockContext& context) {
  if (!spec) return std::nullopt;
  return Norm(scope, *spec, c, context.tp.sharded_sequence());
}

NormOutput own(NormOutput input, const ModuleUse& use) {
  input.normed = use.own(input.normed);
  return input;
}

// Applies a branch's post-norm, if there is one.
at::Tensor behind(const std::optional<Norm>& norm, const ModuleUse& use, const at::Tensor& branch_SBH,
                  const ForwardContext& context) {
  return norm ? use(context, branch_SBH, [&] { return (*norm)(branch_SBH).normed; }) : branch_SBH;
}

}  // namespace

TransformerBlock::Uses::Uses(const ModuleScope& scope)
    : attention_norm(scope["attention_norm"]),
      attention(scope["attention"]),
      attention_post_norm(scope["attention_post_norm"]),
      mlp_norm(scope["mlp_norm"]),
      mlp(scope["mlp"]),
      mlp_post_norm(scope["mlp_post_norm"]) {}

TransformerBlock::TransformerBlock(const ModuleScope& scope, const ModelConfig& c, const BlockContext& context)
    : TransformerBlock(scope, c, context,
                       block_norm_specs(c, c.has_attention(context.layer), c.has_feed_forward(context.layer))) {}

TransformerBlock::TransformerBlock(const ModuleScope& scope, const ModelConfig& c, const BlockContext& context,
                                   const BlockNormSpecs& norms)
    : name_(scope.path()),
      uses_(scope),
      residual_form_(c.residual_form),
      residual_multiplier_(c.residual_multiplier),
      recompute_mlp_(context.recompute.feed_forward(c.is_moe_layer(context.layer))),
      attention_norm_(make_norm(scope, norms.attention, c, context)),
      attention_(make_attention(scope["attention"], c, context)),
      attention_post_norm_(make_norm(scope, norms.attention_post, c, context)),
      mlp_norm_(make_norm(scope, norms.mlp, c, context)),
      mlp_(make_mlp(scope["mlp"], c, context)),
      mlp_post_norm_(make_norm(scope, norms.mlp_post, c, context)),
      shared_weights_(c.repeats_layer(context.layer) ? scope.weights() : std::vector<at::Tensor>()) {}

// The input of a branch: the residual stream with the last branch added, normalized if there is a pre-norm.
NormOutput TransformerBlock::norm_before(const std::optional<Norm>& norm, const ModuleUse& use,
                                         const ResidualStream& stream, const ForwardContext& context) const {
  if (norm) {
    ResidualStream read = stream;
    at::Tensor& last = read.branch_SBH.defined() ? read.branch_SBH : read.x_SBH;
    last = use.own(last);
    return use(context, last, [&] { return (*norm)(read.x_SBH, read.branch_SBH); });
  }
  const at::Tensor sum = stream.sum();
  return {sum, sum};
}

at::Tensor TransformerBlock::residual_update(const at::Tensor& branch_SBH, const char* name,
                                             const ForwardContext& context) const {
  const at::Tensor scaled_SBH = residual_multiplier_ == 1 ? branch_SBH : branch_SBH * residual_multiplier_;
  return dropout(scaled_SBH, name_ + name, context.dropout, context.dropout_context());
}

at::Tensor TransformerBlock::mlp_branch(const NormOutput& from, const ForwardContext& context) const {
  const NormOutput input = own(from, uses_.mlp);
  const at::Tensor out = uses_.mlp(context, input.normed, [&] { return mlp_->forward(input, context); });
  return residual_update(behind(mlp_post_norm_, uses_.mlp_post_norm, out, context), ".mlp.dropout", context);
}

void TransformerBlock::run_mlp(ResidualStream& stream, const ForwardContext& context, bool own_norm) const {
  const NormOutput input =
      own_norm ? norm_before(mlp_norm_, uses_.mlp_norm, stream, context) : NormOutput{stream.x_SBH, stream.x_SBH};
  stream = {input.sum, mlp_branch(input, context)};
}

template <typename Attend>
void TransformerBlock::run(ResidualStream& stream, const ForwardContext& context, const Attend& attend) const {
  const auto second_half = [&](ResidualStream& half, bool own_norm) {
    const Piece piece = [this, own_norm](ResidualStream& s, const ForwardContext& c) { run_mlp(s, c, own_norm); };
    recompute_mlp_ ? recomputed(piece, half, context, shared_weights_) : piece(half, context);
  };
  if (!attention_) return second_half(stream, true);
  const NormOutput input = norm_before(attention_norm_, uses_.attention_norm, stream, context);
  stream.x_SBH = input.sum;
  const NormOutput attended_to = own(input, uses_.attention);
  const at::Tensor attended = uses_.attention(context, attended_to.normed, [&] { return attend(attended_to); });
  stream.branch_SBH = residual_update(behind(attention_post_norm_, uses_.attention_post_norm, attended, context),
                                      ".attention.dropout", context);
  if (!mlp_) return;
  if (residual_form_ == ResidualForm::kSequential) return second_half(stream, true);
  ResidualStream half{stream.x_SBH, {}};
  if (residual_form_ == ResidualForm::kParallel) {
    second_half(half, true);
    stream.x_SBH = half.x_SBH;
  } else if (recompute_mlp_) {
    half.x_SBH = input.normed;
    second_half(half, false);
  } else {
    half.branch_SBH = mlp_branch(input, context);
  }
  stream.branch_SBH = stream.branch_SBH + half.branch_SBH;
}

void TransformerBlock::forward(ResidualStream& stream, const ForwardContext& context) const {
  run(stream, context, [&](const NormOutput& input) { return attention_->forward(input, context); });
}

void TransformerBlock::decode(ResidualStream& stream, const ForwardContext& context, AttentionCache& cache) const {
  run(stream, context, [&](const NormOutput& input) { return attention_->decode(input, context, cache); });
}

}  // namespace ranklab
