#include "core/plan/expert_walk.h"

#include "core/plan/router_walk.h"

namespace ranklab {
namespace {

constexpr int64_t kCountBytes = 8;  // counts are int64

const MoeConfig& moe(const LayerWalk& w) { return w.shape().model.moe; }
int64_t hidden(const LayerWalk& w) { return w.shape().model.hidden_size; }
int64_t routed_bytes(const LayerWalk& w) { return w.shape().routed_tokens() * hidden(w) * w.shape().element_bytes(); }

// Rows that arrive at this rank's experts, those that its etp peers brought among them.
int64_t expert_rows(const LayerWalk& w) { return w.shape().routed_tokens() * w.shape().dims.etp; }

void exchange(LayerWalk& w) {
  if (w.shape().dims.ep > 1) w.call(Axis::kEp, Verb::kAllToAll, routed_bytes(w));
}

void share_counts(LayerWalk& w, Axis axis, int64_t experts) {
  const int size = w.shape().dims.size(axis);
  if (size > 1) w.call(axis, Verb::kAllGather, size * experts * kCountBytes);
}

void etp_call(LayerWalk& w, Verb verb) {
  if (w.shape().dims.etp > 1) w.call(Axis::kEtp, verb, routed_bytes(w) * w.shape().dims.etp);
}

// All experts' weights are read or written once.
void grouped_product(LayerWalk& w, int64_t in, int64_t out) {
  const auto n = static_cast<double>(expert_rows(w));
  const double weights = w.rows(in * w.shape().local_experts(), out);
  w.visitor().compute(2 * n * static_cast<double>(in) * static_cast<double>(out),
                      w.rows(expert_rows(w), in + out) + weights, 1);
}

// --- copies of the rows around the exchanges: into another order, or added up from it ---
void reorder(LayerWalk& w, int64_t rows) { w.kernel(2 * w.rows(rows, hidden(w))); }
void reorder_back(LayerWalk& w, int64_t rows) {
  const double index = static_cast<double>(rows * kCountBytes);
  w.kernel(index);  // the inverse of the order
  w.kernel(3 * index);
  reorder(w, rows);
}
void reorder_grad(LayerWalk& w, int64_t rows) {
  w.kernel(w.rows(rows, hidden(w)));  // zeros
  w.kernel(3 * w.rows(rows, hidden(w)));
}

void dispatch(LayerWalk& w) {
  const int64_t rows = w.shape().routed_tokens(), indices = rows * kCountBytes;
  w.kernel(6.0 * static_cast<double>(indices), 3);  // assignments sorted by expert
  share_counts(w, Axis::kEp, moe(w).num_experts);
  reorder(w, rows);
  exchange(w);
  if (w.shape().dims.ep > 1) reorder(w, rows);
  share_counts(w, Axis::kEtp, w.shape().local_experts());
  etp_call(w, Verb::kAllGather);
  if (w.shape().dims.etp > 1) reorder(w, expert_rows(w));
}

void combine(LayerWalk& w) {
  const int64_t rows = w.shape().routed_tokens();
  if (w.shape().dims.etp > 1) reorder_back(w, expert_rows(w));
  etp_call(w, Verb::kReduceScatter);
  if (w.shape().dims.ep > 1) reorder_back(w, rows);
  exchange(w);
  reorder_back(w, rows);
  w.kernel(3 * w.rows(rows, hidden(w)) + w.stream_bytes(), 2);  // times the weights, added up
}

void combine_backward(LayerWalk& w) {
  const int64_t rows = w.shape().routed_tokens();
  w.kernel(5 * w.rows(rows, hidden(w)), 3);
  reorder_grad(w, rows);
  exchange(w);
  if (w.shape().dims.ep > 1) reorder_grad(w, rows);
  etp_call(w, Verb::kAllGather);
  if (w.shape().dims.etp > 1) reorder_grad(w, expert_rows(w));
}

void dispatch_backward(LayerWalk& w) {
  const int64_t rows = w.shape().routed_tokens();
  if (w.shape().dims.etp > 1) reorder_grad(w, expert_rows(w));
  etp_call(w, Verb::kReduceScatter);
  if (w.shape().dims.ep > 1) reorder_grad(w, rows);
  exchange(w);
  w.kernel(w.stream_bytes());
  w.kernel(3 * w.rows(rows, hidden(w)));
}

void shared_forward(LayerWalk& w) {
  const int64_t ffn = w.shape().shared_ffn_width(), up = w.shape().up_width(ffn);
  if (ffn == 0) return;
  w.column_forward(hidden(w), up, false);
  w.activation_forward(w.tokens(), up);
  w.row_forward(ffn, false);
  w.kernel(3 * w.stream_bytes());  // added to the routed experts' outputs
}

void shared_backward(LayerWalk& w) {
  const int64_t ffn = w.shape().shared_ffn_width(), up = w.shape().up_width(ffn);
  if (ffn == 0) return;
  if (w.weight_half()) w.activation_forward(w.tokens(), up);  // computed again instead of kept
  w.row_backward(ffn, false);
  if (w.input_half()) w.activation_backward(w.tokens(), up);
  w.column_backward(hidden(w), up, false);
  w.arrive(ModulePart::kSharedExperts);
}

void products_backward(LayerWalk& w) {
  const int64_t ffn = w.shape().expert_ffn_width(), up = w.shape().up_width(ffn);
  if (w.input_half()) grouped_product(w, hidden(w), ffn);
  if (w.weight_half()) grouped_product(w, ffn, hidden(w));
  if (w.input_half()) w.activation_backward(expert_rows(w), up);
  if (w.input_half()) grouped_product(w, up, hidden(w));
  if (w.weight_half()) grouped_product(w, hidden(w), up);
}

}  // namespace

void experts_forward(LayerWalk& w) {
  const int64_t ffn = w.shape().expert_ffn_width(), up = w.shape().up_width(ffn);
  router_forward(w);
  dispatch(w);
  grouped_product(w, hidden(w), up);
  w.activation_forward(expert_rows(w), up);
  grouped_product(w, ffn, hidden(w));
  combine(w);
  shared_forward(w);
}

void experts_backward(LayerWalk& w) {
  shared_backward(w);
  if (w.input_half()) combine_backward(w);
  products_backward(w);
  w.arrive(ModulePart::kExperts);
  if (w.input_half()) dispatch_backward(w);
  router_backward(w);
  if (!w.input_half()) return;
  w.kernel(3 * w.stream_bytes());  // gradients of the dispatched tokens and of the router's are added
  if (w.shape().shared_ffn_width() > 0) w.kernel(3 * w.stream_bytes());
}

}  // namespace ranklab
