#include "core/model/mlp_layer.h"

#include "core/model/attention_layer.h"
#include "core/nn/activation.h"

namespace ranklab {
namespace {

at::Tensor (*activation_of(const ModelConfig& c))(const at::Tensor&) {
  switch (c.activation) {
    case ActivationKind::kSwiGlu:
      return swiglu;
    case ActivationKind::kGelu:
      return gelu_tanh;
    case ActivationKind::kGeluErf:
      return gelu_erf;
    case ActivationKind::kGeGlu:
      return geglu;
  }
  return nullptr;
}

std::vector<int64_t> up_segments(const ModelConfig& c, int64_t ffn) {
  return c.has_gated_mlp() ? std::vector<int64_t>{ffn, ffn} : std::vector<int64_t>{ffn};
}

class DenseMlp : public MlpLayer {
 public:
  DenseMlp(ParameterRegistry& registry, const std::string& name, const ModelConfig& c, int64_t ffn, TensorParallel tp)
      : activation_(activation_of(c)),
        up_(registry, name + (c.has_gated_mlp() ? ".gate_up" : ".up"),
            {c.hidden_size, c.has_gated_mlp() ? 2 * ffn : ffn}, up_segments(c, ffn), {InitKind::kNormal, c.init_std},
            c.add_bias, tp),
        down_(registry, name + ".down", {ffn, c.hidden_size}, residual_init(c), c.add_bias, tp) {}

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

std::unique_ptr<MlpLayer> make_dense_mlp(ParameterRegistry& registry, const std::string& name,
                                         const ModelConfig& config, int64_t ffn_hidden_size, TensorParallel tp) {
  return std::make_unique<DenseMlp>(registry, name, config, ffn_hidden_size, tp);
}

}  // namespace ranklab
