#include "core/model/output_head.h"

#include "core/nn/activation.h"
#include "core/parallel/quantizer_book.h"

namespace ranklab {
namespace {

const Parameter* make_weight(ParameterRegistry& registry, const ModelConfig& c, const TensorParallel& tp) {
  return &registry.create("head.weight", shard_padded({c.vocab_size, c.hidden_size}, tp.rank(), tp.size()),
                          {InitKind::kNormal, c.init_std}, true);
}

const Parameter* make_bias(ParameterRegistry& registry, const ModelConfig& c, const TensorParallel& tp) {
  if (!c.add_head_bias) return nullptr;
  return &registry.create("head.bias", shard_padded({c.vocab_size}, tp.rank(), tp.size()), {InitKind::kZeros}, false);
}

LinearQuantizer* make_head_quantizer(ParameterRegistry& registry, const ModelConfig& c, const TensorParallel& tp) {
  const int64_t vocabulary = (c.vocab_size + tp.size() - 1) / tp.size() * tp.size();  // with padding
  return make_quantizer(registry, "head", {c.hidden_size, vocabulary, {}, LinearSplit::kColumn, tp});
}

}  // namespace

OutputHead::OutputHead(ParameterRegistry& registry, const ModelConfig& c, const Parameter* tied, TensorParallel tp)
    : weight_(tied != nullptr ? tied : make_weight(registry, c, tp)),
      bias_(make_bias(registry, c, tp)),
      quantizer_(make_head_quantizer(registry, c, tp)),
      tp_(tp),
      cap_(c.final_logit_softcapping) {}

at::Tensor OutputHead::operator()(const NormOutput& state) const {
  const at::Tensor logits_SBV =
      column_parallel_linear(state, weight_->data, bias_ == nullptr ? at::Tensor() : bias_->data, tp_, quantizer_);
  return cap_ > 0 ? soft_capped(logits_SBV, cap_) : logits_SBV;
}

}  // namespace ranklab
