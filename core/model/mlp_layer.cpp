#include "core/model/mlp_layer.h"

#include "core/model/attention_layer.h"
#include "core/nn/activation.h"

namespace ranklab {
namespace {

bool is_gated(const ModelConfig& c) { return c.activation == ActivationKind::kSwiGlu; }

std::vector<int64_t> up_segments(const ModelConfig& c, int64_t ffn) {
  return is_gated(c) ? std::vector<int64_t>{ffn, ffn} : std::vector<int64_t>{ffn};
}

class DenseMlp : public MlpLayer {
 public:
  DenseMlp(ParameterRegistry& registry, const std::string& name, const ModelConfig& c, int64_t ffn, TensorParallel tp)
      : gated_(is_gated(c)),
        up_(registry, name + (gated_ ? ".gate_up" : ".up"), {c.hidden_size, gated_ ? 2 * ffn : ffn},
            up_segments(c, ffn), {InitKind::kNormal, c.init_std}, c.add_bias, tp),
        down_(registry, name + ".down", {ffn, c.hidden_size}, residual_init(c), c.add_bias, tp) {}

  at::Tensor forward(const NormOutput& x, const Batch&) override {
    return down_(activate(gated_ ? swiglu : gelu_tanh, up_(x)));
  }

 private:
  bool gated_;
  ColumnParallelLinear up_;
  RowParallelLinear down_;
};

}  // namespace

std::unique_ptr<MlpLayer> make_dense_mlp(ParameterRegistry& registry, const std::string& name,
                                         const ModelConfig& config, int64_t ffn_hidden_size, TensorParallel tp) {
  return std::make_unique<DenseMlp>(registry, name, config, ffn_hidden_size, tp);
}

}  // namespace ranklab
