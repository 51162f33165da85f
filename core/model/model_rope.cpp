#include "core/model/model_rope.h"

#include "core/nn/rope_scaling.h"
#include "core/nn/yarn.h"

namespace ranklab {

RopeTable make_model_rope(const ModelConfig& c, const at::TensorOptions& options) {
  if (c.position != PositionKind::kRope) return {};
  const int64_t turned = c.rotary_width();
  const RopeShape shape{turned, c.is_partly_rotary() ? c.head_dim() - turned : 0, c.rope_theta};
  if (c.yarn.enabled()) return make_yarn_table(c.seq_length, shape, c.yarn, options);
  return make_scaled_table(c.seq_length, shape, c.rope_scaling, options);
}

}  // namespace ranklab
