#include "core/model/mlp_layer.h"

#include "core/nn/activation.h"

namespace ranklab {
namespace {

class DenseMlp : public MlpLayer {
 public:
  DenseMlp(const ModuleScope& scope, const MlpSpec& spec, ActivationKind activation, TensorParallel tp)
      : activation_(activation_function(activation)), up_(scope, spec.up, tp), down_(scope, spec.down, tp) {}

  at::Tensor forward(const NormOutput& x, const ForwardContext& context) override {
    const at::Tensor up = up_(x, context.tokens);
    return activation_ == swiglu ? down_.of_swiglu(up, context.tokens)
                                 : down_(activate(activation_, up), context.tokens);
  }

 private:
  at::Tensor (*activation_)(const at::Tensor&);
  ColumnParallelLinear up_;
  RowParallelLinear down_;
};

}  // namespace

std::unique_ptr<MlpLayer> make_dense_mlp(const ModuleScope& scope, const MlpSpec& spec, ActivationKind activation,
                                         TensorParallel tp) {
  return std::make_unique<DenseMlp>(scope, spec, activation, tp);
}

}  // namespace ranklab
