#include "core/model/model_rope.h"

#include "core/nn/rope_scaling.h"
#include "core/nn/yarn.h"

namespace ranklab {
namespace {

RopeShape shape_of(const ModelConfig& c, double theta) {
  const int64_t rotary_dim = c.rotary_width();
  return {rotary_dim, c.is_partly_rotary() ? c.head_dim() - rotary_dim : 0, theta};
}

}  // namespace

RopeTable make_model_rope(const ModelConfig& c, const at::TensorOptions& options) {
  if (c.position != PositionKind::kRope) return {};
  const RopeShape shape = shape_of(c, c.rope_theta);
  if (c.yarn.enabled()) return make_yarn_table(c.seq_length, shape, c.yarn, options);
  return make_scaled_table(c.seq_length, shape, c.rope_scaling, options);
}

RopeTable make_local_rope(const ModelConfig& c, const RopeTable& of_model, const at::TensorOptions& options) {
  if (!c.has_local_rope()) return of_model;
  return make_scaled_table(c.seq_length, shape_of(c, c.local_rope_theta), {}, options);
}

}  // namespace ranklab
