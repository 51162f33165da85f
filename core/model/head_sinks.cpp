#include "core/model/head_sinks.h"

#include "core/sim/aten.h"

namespace ranklab {

HeadSinks::HeadSinks(const ModuleScope& scope, const std::optional<ModuleSpec>& spec, const ModelConfig& c,
                     const TensorParallel& tp) {
  if (spec) learned_ = &scope.make_weight(*spec, tp.rank(), tp.size());
  const at::TensorOptions options = at::TensorOptions(scope.registry().dtype()).device(scope.registry().device());
  if (c.softmax == SoftmaxKind::kOffByOne) zeros_ = at::zeros({c.num_attention_heads / tp.size()}, options);
}

at::Tensor HeadSinks::of_heads() const { return learned_ != nullptr ? learned_->data : zeros_; }

}  // namespace ranklab
