#include "core/model/experts.h"

#include <string>

#include "core/nn/activation.h"
#include "core/parallel/expert/expert_mlp.h"
#include "core/parallel/expert/grouped_linear.h"
#include "core/parallel/quantized/quantizer_book.h"

namespace ranklab {
namespace {

at::Tensor make_weight(const ModuleScope& scope, const ModuleSpec& spec, Communicator& etp) {
  Parameter& parameter = scope.make_weight(spec, etp.rank(), etp.size());
  parameter.is_expert = true;
  return parameter.data;
}

void add_bias(std::vector<at::Tensor>& biases, const ModuleScope& scope, const ModuleSpec& spec, Communicator& etp) {
  Parameter* parameter = scope.make_bias(spec, etp.rank(), etp.size());
  if (parameter == nullptr) return;
  parameter->is_expert = true;
  biases.push_back(parameter->data);
}

void add_quantizer(std::vector<LinearQuantizer*>& quantizers, LinearQuantizer* quantizer) {
  if (quantizer != nullptr) quantizers.push_back(quantizer);
}

}  // namespace

Experts::Experts(const ModuleScope& scope, const MlpSpec& spec, const ModelConfig& c, Communicator& ep,
                 Communicator& etp, bool shares_weights)
    : activation_(activation_function(c.activation)),
      shares_weights_(shares_weights),
      down_bias_use_(etp.size() == 1   ? BiasUse::kAdd
                     : etp.rank() == 0 ? BiasUse::kAddForGroup
                                       : BiasUse::kLeaveToPeer) {
  const int64_t own = c.moe.num_experts / ep.size();
  const TensorParallel group{&etp, false};
  for (int64_t expert = own * ep.rank(); expert < own * (ep.rank() + 1); ++expert) {
    const ModuleScope one = scope[std::to_string(expert)];
    up_.push_back(make_weight(one, spec.up, etp));
    add_bias(up_biases_, one, spec.up, etp);
    down_.push_back(make_weight(one, spec.down, etp));
    add_bias(down_biases_, one, spec.down, etp);
    add_quantizer(up_quantizers_, make_quantizer(one, spec.up, group, /*dispatched=*/true));
    add_quantizer(down_quantizers_, make_quantizer(one, spec.down, group));
  }
}

at::Tensor Experts::operator()(const at::Tensor& rows_NH, const std::vector<int64_t>& counts,
                               const TokenContext& tokens) const {
  const bool plain = up_quantizers_.empty() && down_quantizers_.empty() && up_biases_.empty() && down_biases_.empty();
  const bool in_blocks = activation_ == swiglu && plain && is_charged_as_blocks(rows_NH);
  // In blocks the gradients of all weights are made at once, and those of other uses would be added later than on a
  // GPU.
  if (in_blocks && !shares_weights_ && has_expert_blocks(rows_NH)) return expert_mlp(rows_NH, counts, up_, down_);
  const at::Tensor up =
      add_expert_biases(grouped_linear(rows_NH, counts, up_, up_quantizers_, tokens), counts, up_biases_);
  const Activated inner = in_blocks ? swiglu_charged_twice(up) : activate(activation_, up);
  return add_expert_biases(grouped_linear(inner, counts, down_, down_quantizers_, tokens), counts, down_biases_,
                           down_bias_use_);
}

}  // namespace ranklab
