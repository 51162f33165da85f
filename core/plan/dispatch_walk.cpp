#include "core/plan/dispatch_walk.h"

#include <cmath>

#include "core/base/error.h"
#include "core/plan/token_spread.h"

namespace ranklab {
namespace {

constexpr int64_t kNumberBytes = 8;  // counts are int64
constexpr int64_t kStampBytes = 16;  // of a row that is put: source and index

int64_t ep(const LayerWalk& w) { return w.shape().dims.ep; }
int64_t hidden(const LayerWalk& w) { return w.shape().model.hidden_size; }
// A row with its weights and experts.
int64_t packed(const LayerWalk& w) { return hidden(w) + 2 * w.shape().model.moe.topk; }
int64_t row_bytes(const LayerWalk& w, int64_t width) { return width * w.shape().element_bytes(); }
int64_t routed(const LayerWalk& w) { return w.shape().routed_tokens(); }
int64_t copies(const LayerWalk& w, int64_t places) {
  return std::llround(static_cast<double>(w.local_tokens()) * expected_places(w.shape().model.moe, places));
}
void copy_rows(LayerWalk& w, int64_t rows, int64_t width) { w.kernel(2 * w.rows(rows, width)); }

void sort_assignments(LayerWalk& w) { w.kernel(6.0 * static_cast<double>(routed(w) * kNumberBytes), 3); }

// --- alltoall ---
void exchange(LayerWalk& w) {
  if (ep(w) > 1)
    w.visitor().wait(w.visitor().exchange(Axis::kEp, even_exchange(w.shape(), routed(w) * row_bytes(w, hidden(w)))));
}

void all_to_all_dispatch(LayerWalk& w) {
  sort_assignments(w);
  share_numbers(w, Axis::kEp, w.shape().model.moe.num_experts);
  reorder(w, routed(w));
  exchange(w);
  if (ep(w) > 1) reorder(w, routed(w));
}
void all_to_all_combine(LayerWalk& w) {
  if (ep(w) > 1) reorder_back(w, routed(w));
  exchange(w);
  reorder_back(w, routed(w));
  w.kernel(3 * w.rows(routed(w), hidden(w)) + w.stream_bytes(), 2);  // times the weights, added up
}
void all_to_all_combine_grad(LayerWalk& w) {
  w.kernel(5 * w.rows(routed(w), hidden(w)), 3);
  reorder_grad(w, routed(w));
  exchange(w);
  if (ep(w) > 1) reorder_grad(w, routed(w));
}
void all_to_all_dispatch_grad(LayerWalk& w) {
  if (ep(w) > 1) reorder_grad(w, routed(w));
  exchange(w);
  w.kernel(w.stream_bytes());
  w.kernel(3 * w.rows(routed(w), hidden(w)));
}

// --- what the others have in common: packed tokens, and sums of own experts ---
void pack(LayerWalk& w) { w.kernel(2 * w.rows(w.local_tokens(), packed(w)), 2); }
void pack_grad(LayerWalk& w) { w.kernel(w.rows(w.local_tokens(), packed(w)), 2); }

// The rows that arrived, `tokens` of them, for their experts here.
void own_rows(LayerWalk& w, int64_t tokens) {
  w.kernel(static_cast<double>(4 * tokens * w.shape().model.moe.topk * kNumberBytes), 6);
  sort_assignments(w);
  reorder(w, routed(w));
}
void own_rows_grad(LayerWalk& w, int64_t tokens) {
  reorder_grad(w, routed(w));
  w.kernel(3 * w.rows(tokens, packed(w)), 4);  // gradients of tokens and of weights meet
}
void own_sum(LayerWalk& w, int64_t tokens) {
  w.kernel(2 * w.rows(routed(w), hidden(w)), 2);  // times the weights
  w.kernel(w.rows(tokens, hidden(w)));
  w.kernel(3 * w.rows(routed(w), hidden(w)));
}
void own_sum_grad(LayerWalk& w) { w.kernel(7 * w.rows(routed(w), hidden(w)), 6); }

// --- allgather ---
void gather_or_reduce(LayerWalk& w, Verb verb, int64_t width) {
  if (ep(w) > 1) w.call(Axis::kEp, verb, ep(w) * w.local_tokens() * row_bytes(w, width));
}
void all_gather_dispatch(LayerWalk& w) {
  share_numbers(w, Axis::kEp, 1);
  pack(w);
  gather_or_reduce(w, Verb::kAllGather, packed(w));
  own_rows(w, ep(w) * w.local_tokens());
}
void all_gather_combine(LayerWalk& w) {
  own_sum(w, ep(w) * w.local_tokens());
  gather_or_reduce(w, Verb::kReduceScatter, hidden(w));
}
void all_gather_combine_grad(LayerWalk& w) {
  gather_or_reduce(w, Verb::kAllGather, hidden(w));
  own_sum_grad(w);
}
void all_gather_dispatch_grad(LayerWalk& w) {
  own_rows_grad(w, ep(w) * w.local_tokens());
  gather_or_reduce(w, Verb::kReduceScatter, packed(w));
  pack_grad(w);
}

// --- dedup: a hop between nodes, a hop inside the node ---
struct Hops {
  explicit Hops(const LayerWalk& w)
      : in_node(w.shape().ep_members_in_node()),
        nodes(ep(w) / in_node),
        taken_in(copies(w, nodes)),
        arrived(copies(w, ep(w))) {}
  int64_t in_node, nodes;
  int64_t taken_in;  // rows of a rank after the first hop ...
  int64_t arrived;   // ... and after the second
};

void between_nodes(LayerWalk& w, const Hops& hops, int64_t width) {
  if (hops.nodes == 1) return;
  const int64_t bytes = hops.taken_in * row_bytes(w, width);
  w.visitor().wait(w.visitor().exchange(
      Axis::kEp, {.logical = bytes, .in_node = 0, .across = bytes / hops.nodes * (hops.nodes - 1)}));
}
void inside_node(LayerWalk& w, const Hops& hops, int64_t width) {
  if (hops.in_node == 1) return;
  const int64_t bytes = hops.arrived * row_bytes(w, width);
  w.visitor().wait(w.visitor().exchange(
      Axis::kEp, {.logical = bytes, .in_node = bytes / hops.in_node * (hops.in_node - 1), .across = 0}));
}
void hop_kernels(LayerWalk& w, int64_t rows) {
  w.kernel(static_cast<double>(10 * rows * w.shape().model.moe.topk * kNumberBytes), 18);  // who goes where
  w.kernel(2 * w.rows(rows, packed(w)), 3);
}

void dedup_dispatch(LayerWalk& w) {
  const Hops hops(w);
  pack(w);
  share_numbers(w, Axis::kEp, ep(w) + hops.nodes);
  if (hops.nodes > 1) hop_kernels(w, hops.taken_in);
  between_nodes(w, hops, packed(w));
  if (hops.in_node > 1) hop_kernels(w, hops.arrived);
  inside_node(w, hops, packed(w));
  own_rows(w, hops.arrived);
}
void dedup_combine(LayerWalk& w) {
  const Hops hops(w);
  own_sum(w, hops.arrived);
  inside_node(w, hops, hidden(w));
  if (hops.in_node > 1) w.kernel(4 * w.rows(hops.arrived, hidden(w)), 2);
  between_nodes(w, hops, hidden(w));
  if (hops.nodes > 1) w.kernel(4 * w.rows(hops.taken_in, hidden(w)), 2);
}
void dedup_combine_grad(LayerWalk& w) {
  const Hops hops(w);
  if (hops.nodes > 1) copy_rows(w, hops.taken_in, hidden(w));
  between_nodes(w, hops, hidden(w));
  if (hops.in_node > 1) copy_rows(w, hops.arrived, hidden(w));
  inside_node(w, hops, hidden(w));
  own_sum_grad(w);
}
void dedup_dispatch_grad(LayerWalk& w) {
  const Hops hops(w);
  own_rows_grad(w, hops.arrived);
  inside_node(w, hops, packed(w));
  if (hops.in_node > 1) w.kernel(4 * w.rows(hops.arrived, packed(w)), 3);
  between_nodes(w, hops, packed(w));
  if (hops.nodes > 1) w.kernel(4 * w.rows(hops.taken_in, packed(w)), 3);
  pack_grad(w);
}

// --- rdep: puts to every owner, one after another ---
void put_to_peers(LayerWalk& w, int64_t width) {
  const int64_t rows = copies(w, ep(w)) / ep(w);
  int last = -1;
  for (int64_t peer = 1; peer < ep(w); ++peer)
    last = w.post(Axis::kEp, Verb::kSend, rows * (row_bytes(w, width) + kStampBytes));
  if (last >= 0) w.visitor().wait(last);
  if (ep(w) > 1) copy_rows(w, copies(w, ep(w)), width);
}

void rdep_dispatch(LayerWalk& w) {
  pack(w);
  if (ep(w) > 1) hop_kernels(w, copies(w, ep(w)));
  put_to_peers(w, packed(w));
  own_rows(w, copies(w, ep(w)));
}
void rdep_combine(LayerWalk& w) {
  own_sum(w, copies(w, ep(w)));
  put_to_peers(w, hidden(w));
  if (ep(w) > 1) w.kernel(4 * w.rows(copies(w, ep(w)), hidden(w)), 2);
}
void rdep_combine_grad(LayerWalk& w) {
  if (ep(w) > 1) copy_rows(w, copies(w, ep(w)), hidden(w));
  put_to_peers(w, hidden(w));
  own_sum_grad(w);
}
void rdep_dispatch_grad(LayerWalk& w) {
  own_rows_grad(w, copies(w, ep(w)));
  put_to_peers(w, packed(w));
  if (ep(w) > 1) w.kernel(4 * w.rows(copies(w, ep(w)), packed(w)), 3);
  pack_grad(w);
}

constexpr DispatchWalk kDispatchWalks[] = {
    {"alltoall", all_to_all_dispatch, all_to_all_combine, all_to_all_combine_grad, all_to_all_dispatch_grad},
    {"allgather", all_gather_dispatch, all_gather_combine, all_gather_combine_grad, all_gather_dispatch_grad},
    {"dedup", dedup_dispatch, dedup_combine, dedup_combine_grad, dedup_dispatch_grad},
    {"rdep", rdep_dispatch, rdep_combine, rdep_combine_grad, rdep_dispatch_grad},
};

}  // namespace

const DispatchWalk& dispatch_walk(const StepShape& shape) {
  for (const DispatchWalk& row : kDispatchWalks) {
    if (shape.moe_dispatcher == row.name) return row;
  }
  throw Error(ErrorKind::kInternal, {.where = "plan",
                                     .what = "this token dispatcher is not planned",
                                     .got = shape.moe_dispatcher,
                                     .want = "a row of kDispatchWalks"});
}

void reorder(LayerWalk& w, int64_t rows) { copy_rows(w, rows, hidden(w)); }
void reorder_back(LayerWalk& w, int64_t rows) {
  const double index = static_cast<double>(rows * kNumberBytes);
  w.kernel(index);  // the inverse of the order
  w.kernel(3 * index);
  reorder(w, rows);
}
void reorder_grad(LayerWalk& w, int64_t rows) {
  w.kernel(w.rows(rows, hidden(w)));  // zeros
  w.kernel(3 * w.rows(rows, hidden(w)));
}

void share_numbers(LayerWalk& w, Axis axis, int64_t numbers) {
  const int size = w.shape().dims.size(axis);
  if (size > 1) w.call(axis, Verb::kAllGather, size * numbers * kNumberBytes);
}

}  // namespace ranklab
