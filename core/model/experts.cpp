#include "core/model/experts.h"

#include "core/model/attention_layer.h"
#include "core/nn/activation.h"
#include "core/parallel/expert/expert_mlp.h"
#include "core/parallel/expert/grouped_linear.h"
#include "core/parallel/quantizer_book.h"

namespace ranklab {
namespace {

at::Tensor create(ParameterRegistry& registry, const std::string& name, Partition partition, Init init) {
  Parameter& parameter = registry.create(name, std::move(partition), init, true);
  parameter.is_expert = true;
  return parameter.data;
}

void add_quantizer(std::vector<LinearQuantizer*>& quantizers, const ParameterRegistry& registry,
                   const std::string& module, const LinearForm& form) {
  LinearQuantizer* quantizer = make_quantizer(registry, module, form);
  if (quantizer != nullptr) quantizers.push_back(quantizer);
}

}  // namespace

Experts::Experts(ParameterRegistry& registry, const std::string& name, const ModelConfig& c, Communicator& ep,
                 Communicator& etp) {
  const int64_t own = c.moe.num_experts / ep.size(), ffn = c.expert_ffn(), hidden = c.hidden_size;
  for (int64_t expert = own * ep.rank(); expert < own * (ep.rank() + 1); ++expert) {
    const std::string one = name + "." + std::to_string(expert);
    gate_up_.push_back(create(registry, one + ".gate_up.weight",
                              shard_segments({2 * ffn, hidden}, {ffn, ffn}, etp.rank(), etp.size()),
                              {InitKind::kNormal, c.init_std}));
    down_.push_back(
        create(registry, one + ".down.weight", shard_dim({hidden, ffn}, 1, etp.rank(), etp.size()), residual_init(c)));
    const TensorParallel group{&etp, false};
    add_quantizer(gate_up_quantizers_, registry, one + ".gate_up",
                  {hidden, 2 * ffn, {ffn, ffn}, LinearSplit::kColumn, group, /*dispatched=*/true});
    add_quantizer(down_quantizers_, registry, one + ".down", {ffn, hidden, {}, LinearSplit::kRow, group});
  }
}

at::Tensor Experts::operator()(const at::Tensor& rows_NH, const std::vector<int64_t>& counts,
                               const TokenPlace& tokens) const {
  if (gate_up_quantizers_.empty() && down_quantizers_.empty() && has_expert_blocks(rows_NH))
    return expert_mlp(rows_NH, counts, gate_up_, down_);
  const at::Tensor gate_up = grouped_linear(rows_NH, counts, gate_up_, gate_up_quantizers_, tokens);
  return grouped_linear(activate(swiglu, gate_up), counts, down_, down_quantizers_, tokens);
}

}  // namespace ranklab
