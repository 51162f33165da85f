#include "core/plan/expert_walk.h"

#include "core/plan/dispatch_walk.h"
#include "core/plan/router_walk.h"

namespace ranklab {
namespace {

int64_t routed_bytes(const LayerWalk& w) { return w.shape().routed_tokens() * w.hidden() * w.shape().element_bytes(); }

// Rows that arrive at this rank's experts, those that its etp peers brought among them.
int64_t expert_rows(const LayerWalk& w) { return w.shape().routed_tokens() * w.shape().dims.etp; }

void etp_call(LayerWalk& w, Verb verb) {
  if (w.shape().dims.etp > 1) w.call(Axis::kEtp, verb, routed_bytes(w) * w.shape().dims.etp);
}

bool sorts_gathered(const LayerWalk& w) { return w.shape().dims.etp > 1 && w.shape().local_experts() > 1; }

// --- etp: the rows of all its members before the experts, their own after them ---
void etp_gather(LayerWalk& w) {
  share_numbers(w, Axis::kEtp, w.shape().local_experts());
  etp_call(w, Verb::kAllGather);
  if (sorts_gathered(w)) reorder(w, expert_rows(w));
}
void etp_reduce(LayerWalk& w) {
  if (sorts_gathered(w)) reorder_back(w, expert_rows(w));
  etp_call(w, Verb::kReduceScatter);
}
void etp_reduce_grad(LayerWalk& w) {
  etp_call(w, Verb::kAllGather);
  if (sorts_gathered(w)) reorder_grad(w, expert_rows(w));
}
void etp_gather_grad(LayerWalk& w) {
  if (sorts_gathered(w)) reorder_grad(w, expert_rows(w));
  etp_call(w, Verb::kReduceScatter);
}

// One number a token: a product, its sigmoid, and the product with the outputs.
void shared_gate_forward(LayerWalk& w) {
  w.matmul(w.local_tokens(), w.hidden(), 1);
  w.kernel(2 * w.rows(w.local_tokens(), 1));
  w.kernel(2 * w.stream_bytes() + w.rows(w.local_tokens(), 1));
}

void shared_gate_backward(LayerWalk& w) {
  const double gates = w.rows(w.local_tokens(), 1);
  w.kernel(2 * w.stream_bytes() + gates);     // the outputs' gradient
  w.kernel(4 * w.stream_bytes() + gates, 2);  // the gate's, and its sum over the outputs
  w.kernel(3 * gates);                        // the sigmoid's
  w.matmul(w.local_tokens(), 1, w.hidden());
  w.matmul(1, w.local_tokens(), w.hidden());
}

void shared_forward(LayerWalk& w) {
  const int64_t ffn = w.shape().shared_ffn_width(), up = w.shape().up_width(ffn);
  if (ffn == 0) return;
  w.column_forward(w.hidden(), up, false);
  w.activation_forward(w.tokens(), up);
  w.row_forward(ffn, false);
  if (w.shape().model.moe.shared_gate) shared_gate_forward(w);
  w.kernel(3 * w.stream_bytes());  // added to the routed experts' outputs
}

void shared_backward(LayerWalk& w) {
  const int64_t ffn = w.shape().shared_ffn_width(), up = w.shape().up_width(ffn);
  if (ffn == 0) return;
  if (w.input_half() && w.shape().model.moe.shared_gate) shared_gate_backward(w);
  if (w.weight_half()) w.activation_forward(w.tokens(), up);  // computed again instead of kept
  w.row_backward(ffn, false);
  if (w.input_half()) w.activation_backward(w.tokens(), up);
  w.column_backward(w.hidden(), up, false);
  w.arrive(ModulePart::kSharedExperts);
}

void products_backward(LayerWalk& w) {
  const int64_t ffn = w.shape().expert_ffn_width(), up = w.shape().up_width(ffn);
  const auto of_down = w.products().expert_agreements(ProductSplit::kRow);
  const auto of_up = w.products().expert_agreements(ProductSplit::kColumn);
  if (w.input_half()) w.products().experts(expert_rows(w), w.hidden(), ffn, of_down.input_grad);
  if (w.weight_half()) {
    w.activation_forward(expert_rows(w), up);  // computed again instead of kept
    w.products().experts(expert_rows(w), ffn, w.hidden(), of_down.weight_grad);
  }
  if (w.input_half()) w.activation_backward(expert_rows(w), up);
  if (w.input_half()) w.products().experts(expert_rows(w), up, w.hidden(), of_up.input_grad);
  if (w.weight_half()) w.products().experts(expert_rows(w), w.hidden(), up, of_up.weight_grad);
}

}  // namespace

void experts_forward(LayerWalk& w) {
  const int64_t ffn = w.shape().expert_ffn_width(), up = w.shape().up_width(ffn);
  const DispatchWalk& tokens = dispatch_walk(w.shape());
  router_forward(w);
  w.products().round_tokens(w.local_tokens());
  tokens.dispatch(w);
  etp_gather(w);
  w.products().experts(expert_rows(w), w.hidden(), up, w.products().expert_agreements(ProductSplit::kColumn).forward);
  w.activation_forward(expert_rows(w), up);
  w.products().experts(expert_rows(w), ffn, w.hidden(), w.products().expert_agreements(ProductSplit::kRow).forward);
  etp_reduce(w);
  tokens.combine(w);
  shared_forward(w);
}

void experts_backward(LayerWalk& w) {
  const DispatchWalk& tokens = dispatch_walk(w.shape());
  shared_backward(w);
  if (w.input_half()) {
    tokens.combine_grad(w);
    etp_reduce_grad(w);
  }
  products_backward(w);
  w.arrive(ModulePart::kExperts);
  if (w.input_half()) {
    etp_gather_grad(w);
    tokens.dispatch_grad(w);
  }
  router_backward(w);
  if (!w.input_half()) return;
  w.kernel(3 * w.stream_bytes());  // gradients of the dispatched tokens and of the router's are added
  if (w.shape().shared_ffn_width() > 0) w.kernel(3 * w.stream_bytes());
  if (w.shape().model.moe.shared_gate) w.kernel(3 * w.stream_bytes());
}

}  // namespace ranklab
