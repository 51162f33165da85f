#include "core/model/causal_lm.h"

#include "core/base/error.h"
#include "core/model/decode_cache.h"
#include "core/model/layer_stack.h"

namespace ranklab {

std::vector<int64_t> CausalLm::boundary_shape(int /*part*/, int64_t /*sequences*/, int64_t /*tokens*/,
                                              StageResult /*result*/) const {
  throw Error(ErrorKind::kInvalidArgument, {.where = "pipeline",
                                            .what = "this model cannot be cut into pipeline stages",
                                            .got = "more than one stage",
                                            .want = "--pp 1",
                                            .fix = "make it a LayerStack (core/model/layer_stack.h)"});
}

void CausalLm::set_parameter_gate(ParameterGate* gate) {
  RANKLAB_CHECK(gate == nullptr, ErrorKind::kInvalidArgument, .where = "model",
                .what = "this model does not say when it uses its parameters, so they cannot be gathered for each use",
                .want = "--zero-stage 0, 1 or 2, and no --overlap-param-gather",
                .fix = "make it a LayerStack (core/model/layer_stack.h)");
}

std::unique_ptr<DecodeCache> CausalLm::begin_decoding(int64_t /*sequences*/, int64_t /*positions*/) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "decoding",
                                            .what = "this model keeps no cache of the tokens it has seen",
                                            .want = "begin_decoding() and decode() of CausalLm",
                                            .fix = "override them, or compute logits() of the whole window"});
}

at::Tensor CausalLm::decode(DecodeCache& /*cache*/, const at::Tensor& /*tokens_BS*/) {
  begin_decoding(0, 0);
  return {};
}

at::Tensor CausalLm::forward_stage(int stage, const at::Tensor& input, const Batch& batch, StageResult result) {
  if (stage != 0 || input.defined()) boundary_shape(stage, 0, 0, result);
  return result == StageResult::kLoss ? loss_sum(batch) : logits(batch);
}

AttentionCache LayerStack::make_cache(int64_t layer, int64_t /*sequences*/, int64_t /*positions*/,
                                      const at::TensorOptions& /*options*/) const {
  throw Error(ErrorKind::kInternal, {.where = "layer " + std::to_string(layer),
                                     .what = "a model that supports decoding makes no cache",
                                     .fix = "override make_cache() of LayerStack"});
}

}  // namespace ranklab
