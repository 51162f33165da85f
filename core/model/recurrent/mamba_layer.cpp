#include "core/model/recurrent/mamba_layer.h"

#include <vector>

#include "core/model/recurrent/recurrent_heads.h"
#include "core/nn/output_gate.h"
#include "core/nn/recurrent/short_convolution.h"
#include "core/nn/recurrent/state_space.h"
#include "core/parallel/context/head_exchange.h"
#include "core/sim/aten.h"
#include "core/spec/layer_specs.h"

namespace ranklab {
namespace {

class MambaLayer : public AttentionLayer {
 public:
  MambaLayer(const ModuleScope& scope, const MambaSpec& spec, const ModelConfig& c, const AttentionContext& context)
      : shape_(
            StateSpaceShape{c.mamba_heads(), c.mamba.num_groups, c.mamba.head_dim, c.mamba.state_dim, c.mamba.min_step}
                .over(context.tp.size())),
        epsilon_(c.norm_epsilon),
        tp_(context.tp),
        cp_(context.cp),
        in_(scope, spec.in, context.tp),
        conv_(&weight(scope, spec.conv)),
        conv_bias_(scope.make_bias(spec.conv, context.tp.rank(), context.tp.size())),
        a_log_(&weight(scope, spec.a_log)),
        dt_bias_(&weight(scope, spec.dt_bias)),
        d_(&weight(scope, spec.d)),
        norm_(&weight(scope, spec.norm)),
        out_(scope, spec.out, context.tp) {}

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) const override {
    const Projected own = project(x, context);
    const ContextParallel cp = context.part != nullptr ? cp_ : ContextParallel{};
    const Recurrence all = exchange(own, cp);
    const at::Tensor segment_SB = document_of_positions(context, all.in.xbc.size(0));
    StateSpaceInput in = all.in;
    in.xbc = short_convolution(in.xbc, all.conv, segment_SB);
    return finish(positions_of_all_heads(state_space(in, all.shape, segment_SB), cp), own, context);
  }

  AttentionCache make_cache(int64_t sequences, int64_t /*capacity*/, const at::TensorOptions& options) const override {
    return recurrent_cache(
        sequences, {conv_->data.size(-1), shape_.convolved_width(), shape_.heads, shape_.state_dim, shape_.head_dim},
        options);
  }

  at::Tensor decode(const NormOutput& x, const ForwardContext& context, AttentionCache& cache) const override {
    begin_text(cache);
    const Projected own = project(x, context);
    Recurrence all = exchange(own, {});
    all.in.xbc = short_convolution_after(own.xbc, all.conv, cache.convolved);
    const at::Tensor heads = state_space_after(all.in, shape_, cache.memory);
    cache.positions += own.xbc.size(0);
    return finish(heads, own, context);
  }

 private:
  struct Projected {
    at::Tensor z, xbc, dt;
  };
  // The inputs of the recurrence for this rank's heads, over all positions; xbc as before the convolution.
  struct Recurrence {
    StateSpaceInput in;
    ShortKernel conv;
    StateSpaceShape shape;
  };

  Parameter& weight(const ModuleScope& scope, const ModuleSpec& spec) const {
    return scope.make_weight(spec, tp_.rank(), tp_.size());
  }

  Projected project(const NormOutput& x, const ForwardContext& context) const {
    const auto parts =
        in_(x, context.tokens).split_with_sizes({shape_.inner_width(), shape_.convolved_width(), shape_.heads}, -1);
    return {parts[0], parts[1], parts[2]};
  }

  Recurrence exchange(const Projected& own, const ContextParallel& cp) const {
    if (!cp.active())
      return {{own.xbc, own.dt, a_log_->data, dt_bias_->data, d_->data}, {conv_->data, conv_bias_->data}, shape_};
    const StateSpaceShape one = shape_.over(cp.size());
    const std::vector<int64_t> xbc = {shape_.inner_width(), shape_.group_width(), shape_.group_width()};
    std::vector<int64_t> all = xbc;
    all.push_back(shape_.heads);
    const auto arrived = own_heads_of_all_positions(at::cat({own.xbc, own.dt}, -1), all, cp)
                             .split_with_sizes({one.convolved_width(), one.heads}, -1);
    const auto of_heads = [&](const Parameter* x) { return own_head_rows(x->data, {shape_.heads}, cp); };
    return {{arrived[0], arrived[1], of_heads(a_log_), of_heads(dt_bias_), of_heads(d_)},
            {own_head_rows(conv_->data, xbc, cp), own_head_rows(conv_bias_->data, xbc, cp)},
            one};
  }

  at::Tensor finish(const at::Tensor& heads, const Projected& own, const ForwardContext& context) const {
    return out_(gated_group_norm(heads, own.z, norm_->data, shape_.groups, epsilon_), context.tokens);
  }

  StateSpaceShape shape_;
  double epsilon_;
  TensorParallel tp_;
  ContextParallel cp_;
  ColumnParallelLinear in_;
  Parameter *conv_, *conv_bias_, *a_log_, *dt_bias_, *d_, *norm_;
  RowParallelLinear out_;
};

}  // namespace

std::unique_ptr<AttentionLayer> make_mamba(const ModuleScope& scope, const ModelConfig& config,
                                           const AttentionContext& context) {
  return std::make_unique<MambaLayer>(scope, mamba_spec(config), config, context);
}

}  // namespace ranklab
