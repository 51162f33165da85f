#include "core/plan/planned_axes.h"

namespace ranklab {
namespace {

void pass(const StepShape& shape, StepVisitor& visitor, int times) {
  for (int i = 0; i < times; ++i) visitor.wait(visitor.post(Axis::kCp, Verb::kSend, key_value_bytes(shape)));
}

}  // namespace

bool is_planned(Axis axis) { return axis == Axis::kCp || axis == Axis::kDpCp; }

int64_t key_value_bytes(const StepShape& shape) {
  const MlaConfig& mla = shape.model.mla;
  const int64_t width =
      mla.enabled() ? mla.kv_lora_rank + mla.qk_pos_emb_head_dim : 2 * shape.kv_heads() * shape.model.head_dim();
  return shape.tokens() * width * shape.element_bytes();
}

void ring_attention_forward(const StepShape& shape, StepVisitor& visitor) {
  if (shape.dims.cp > 1) pass(shape, visitor, shape.dims.cp - 1);
}

void ring_attention_backward(const StepShape& shape, StepVisitor& visitor) {
  if (shape.dims.cp > 1) pass(shape, visitor, 2 * shape.dims.cp - 1);
}

}  // namespace ranklab
