#include "core/model/recurrent/delta_net_layer.h"

#include <vector>

#include "core/model/recurrent/recurrent_heads.h"
#include "core/nn/output_gate.h"
#include "core/nn/recurrent/gated_delta_rule.h"
#include "core/nn/recurrent/short_convolution.h"
#include "core/parallel/context/head_exchange.h"
#include "core/sim/aten.h"
#include "core/spec/layer_specs.h"

namespace ranklab {
namespace {

class DeltaNetLayer : public AttentionLayer {
 public:
  DeltaNetLayer(const ModuleScope& scope, const DeltaNetSpec& spec, const ModelConfig& c,
                const AttentionContext& context)
      : shape_(
            DeltaShape{c.linear.num_key_heads, c.linear.num_value_heads, c.linear.key_head_dim, c.linear.value_head_dim}
                .over(context.tp.size())),
        epsilon_(c.norm_epsilon),
        tp_(context.tp),
        cp_(context.cp),
        in_(scope, spec.in, context.tp),
        conv_(&weight(scope, spec.conv)),
        a_log_(&weight(scope, spec.a_log)),
        dt_bias_(&weight(scope, spec.dt_bias)),
        norm_(&scope.make_weight(spec.norm)),
        out_(scope, spec.out, context.tp) {
    norm_->sum_grad_over_tp = context.tp.active();
  }

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) const override {
    const Projected own = project(x, context);
    const ContextParallel cp = context.part != nullptr ? cp_ : ContextParallel{};
    const Exchanged all = exchange(own, cp);
    const at::Tensor segment_SB = document_of_positions(context, all.qkv.size(0));
    const at::Tensor convolved = short_convolution(all.qkv, {all.conv}, segment_SB);
    const at::Tensor heads = gated_delta_rule({convolved, all.gates, all.a_log, all.dt_bias}, all.shape, segment_SB);
    return finish(positions_of_all_heads(heads, cp), own, context);
  }

  AttentionCache make_cache(int64_t sequences, int64_t /*capacity*/, const at::TensorOptions& options) const override {
    return recurrent_cache(
        sequences,
        {conv_->data.size(-1), shape_.convolved_width(), shape_.value_heads, shape_.key_dim, shape_.value_dim},
        options);
  }

  at::Tensor decode(const NormOutput& x, const ForwardContext& context, AttentionCache& cache) const override {
    begin_text(cache);
    const Projected own = project(x, context);
    const at::Tensor convolved = short_convolution_after(own.qkv, {conv_->data}, cache.convolved);
    const at::Tensor heads =
        gated_delta_rule_after({convolved, own.gates, a_log_->data, dt_bias_->data}, shape_, cache.memory);
    cache.positions += own.qkv.size(0);
    return finish(heads, own, context);
  }

 private:
  struct Projected {
    at::Tensor qkv, z, gates;
  };
  // The inputs of the recurrence for this rank's heads, over all positions.
  struct Exchanged {
    at::Tensor qkv, gates, conv, a_log, dt_bias;
    DeltaShape shape;
  };

  Parameter& weight(const ModuleScope& scope, const ModuleSpec& spec) const {
    return scope.make_weight(spec, tp_.rank(), tp_.size());
  }

  Projected project(const NormOutput& x, const ForwardContext& context) const {
    const auto parts =
        in_(x, context.tokens)
            .split_with_sizes({shape_.convolved_width(), shape_.value_width(), 2 * shape_.value_heads}, -1);
    return {parts[0], parts[1], parts[2]};
  }

  Exchanged exchange(const Projected& own, const ContextParallel& cp) const {
    if (!cp.active()) return {own.qkv, own.gates, conv_->data, a_log_->data, dt_bias_->data, shape_};
    const DeltaShape one = shape_.over(cp.size());
    const std::vector<int64_t> qkv = {shape_.key_width(), shape_.key_width(), shape_.value_width()};
    std::vector<int64_t> all = qkv;
    all.insert(all.end(), {shape_.value_heads, shape_.value_heads});
    const auto arrived = own_heads_of_all_positions(at::cat({own.qkv, own.gates}, -1), all, cp)
                             .split_with_sizes({one.convolved_width(), 2 * one.value_heads}, -1);
    const std::vector<int64_t> heads = {shape_.value_heads};
    return {arrived[0],
            arrived[1],
            own_head_rows(conv_->data, qkv, cp),
            own_head_rows(a_log_->data, heads, cp),
            own_head_rows(dt_bias_->data, heads, cp),
            one};
  }

  at::Tensor finish(const at::Tensor& heads, const Projected& own, const ForwardContext& context) const {
    return out_(gated_head_norm(heads, own.z, norm_->data, epsilon_), context.tokens);
  }

  DeltaShape shape_;
  double epsilon_;
  TensorParallel tp_;
  ContextParallel cp_;
  ColumnParallelLinear in_;
  Parameter *conv_, *a_log_, *dt_bias_, *norm_;
  RowParallelLinear out_;
};

}  // namespace

std::unique_ptr<AttentionLayer> make_delta_net(const ModuleScope& scope, const ModelConfig& config,
                                               const AttentionContext& context) {
  return std::make_unique<DeltaNetLayer>(scope, delta_net_spec(config), config, context);
}

}  // namespace ranklab
