#include "core/model/output_head.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/activation.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/parallel/tensor/vocab_cross_entropy.h"
#include "core/sim/aten.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

OutputHead::OutputHead(const ModuleScope& scope, const ModelConfig& c, const Parameter* tied, TensorParallel tp)
    : weight_(tied != nullptr ? tied : &scope.make_weight(head_spec(c), tp.rank(), tp.size())),
      bias_(scope.make_bias(head_spec(c), tp.rank(), tp.size())),
      quantizer_(make_quantizer(scope, head_spec(c), tp)),
      tp_(tp),
      vocab_size_(c.vocab_size),
      scale_(c.logit_scale),
      cap_(c.final_logit_softcapping) {}

at::Tensor OutputHead::operator()(const NormOutput& state, const TokenContext& tokens) const {
  at::Tensor logits_SBV = column_parallel_linear(state, weight_->data, bias_ == nullptr ? at::Tensor() : bias_->data,
                                                 tp_.over(tokens), {quantizer_, tokens});
  if (scale_ != 1) logits_SBV = logits_SBV * scale_;
  return cap_ > 0 ? soft_capped(logits_SBV, cap_) : logits_SBV;
}

at::Tensor OutputHead::predict(const NormOutput& state, const ForwardContext& context) const {
  const at::Tensor logits_SBV = (*this)(state, context.tokens);
  if (context.result == StageResult::kLoss)
    return loss_sum(logits_SBV, context.own_positions(context.batch.targets_BS));
  return all_logits(logits_SBV, context.batch.tokens_BS.size(1));
}

at::Tensor OutputHead::loss_sum(const at::Tensor& logits_SBV, const at::Tensor& targets_BS) const {
  RANKLAB_CHECK(targets_BS.dim() == 2 && targets_BS.numel() == logits_SBV.size(0) * logits_SBV.size(1),
                ErrorKind::kInvalidArgument, .where = "output head", .what = "tokens and targets differ in shape",
                .got = strprintf("%lld targets", static_cast<long long>(targets_BS.numel())),
                .want = strprintf("%lld", static_cast<long long>(logits_SBV.size(0) * logits_SBV.size(1))));
  return vocab_parallel_cross_entropy(logits_SBV.view({-1, logits_SBV.size(2)}), targets_BS.t().reshape({-1}),
                                      weight_->partition, tp_);
}

// Removes padding: positions past the tokens (sequence parallelism) and the last rows of the vocabulary.
at::Tensor OutputHead::all_logits(const at::Tensor& local_SBV, int64_t tokens) const {
  at::Tensor logits_SBV = local_SBV.narrow(0, 0, tokens);
  if (tp_.active()) {
    const at::Tensor logits_VSB = tp_.comm->all_gather(logits_SBV.permute({2, 0, 1}).contiguous());
    logits_SBV = logits_VSB.narrow(0, 0, vocab_size_).permute({1, 2, 0});
  }
  return logits_SBV.transpose(0, 1).contiguous();
}

}  // namespace ranklab
