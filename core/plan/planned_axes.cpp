#include "core/plan/planned_axes.h"

namespace ranklab {
namespace {

void call(StepVisitor& visitor, Axis axis, Verb verb, int64_t bytes) { visitor.wait(visitor.post(axis, verb, bytes)); }

}  // namespace

bool is_planned(Axis axis) {
  return axis != Axis::kWorld && axis != Axis::kTp && axis != Axis::kDp && axis != Axis::kPp;
}

void send_to_neighbour(StepVisitor& visitor, Axis axis, int64_t bytes, int times) {
  for (int i = 0; i < times; ++i) call(visitor, axis, Verb::kSend, bytes);
}

int64_t key_value_bytes(const StepShape& shape) {
  return 2 * shape.tokens() * shape.kv_width() / shape.dims.tp * shape.element_bytes();
}

void ring_attention_forward(const StepShape& shape, StepVisitor& visitor) {
  if (shape.dims.cp > 1) send_to_neighbour(visitor, Axis::kCp, key_value_bytes(shape), shape.dims.cp - 1);
}

void ring_attention_backward(const StepShape& shape, StepVisitor& visitor) {
  if (shape.dims.cp > 1) send_to_neighbour(visitor, Axis::kCp, key_value_bytes(shape), 2 * shape.dims.cp - 1);
}

void expert_exchange(const StepShape& shape, StepVisitor& visitor) {
  const int64_t routed = shape.local_tokens() * shape.router_topk * shape.model.hidden_size * shape.element_bytes();
  const int64_t away = routed * (shape.dims.ep - 1) / shape.dims.ep;
  if (shape.dims.ep > 1) call(visitor, Axis::kEp, Verb::kAllToAll, away);
  if (shape.dims.etp > 1) call(visitor, Axis::kEtp, Verb::kAllGather, routed * shape.dims.etp);
  if (shape.dims.etp > 1) call(visitor, Axis::kEtp, Verb::kReduceScatter, routed * shape.dims.etp);
  if (shape.dims.ep > 1) call(visitor, Axis::kEp, Verb::kAllToAll, away);
}

}  // namespace ranklab
