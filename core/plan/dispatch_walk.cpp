#include "core/plan/dispatch_walk.h"

#include "core/base/error.h"
#include "core/plan/token_spread.h"

namespace ranklab {
namespace {

constexpr int64_t kCountBytes = 8;   // counts are int64
constexpr int64_t kStampBytes = 16;  // of a row that is put: source and index

int64_t ep(const LayerWalk& w) { return w.shape().dims.ep; }
// A row with its weights and experts.
int64_t packed(const LayerWalk& w) { return packed_width(w.shape()); }
int64_t row_bytes(const LayerWalk& w, int64_t width) { return width * w.shape().element_bytes(); }
// The same of tokens on their way to experts.
int64_t sent_bytes(LayerWalk& w, int64_t width) { return w.products().dispatched_row_bytes(width); }
int64_t routed(const LayerWalk& w) { return w.shape().routed_tokens(); }
int64_t copies(const LayerWalk& w, int64_t places) { return token_copies(w.shape(), places); }
void copy_rows(LayerWalk& w, int64_t rows, int64_t width) { w.kernel(2 * w.rows(rows, width)); }

// Several experts of a rank: rows that came source by source are put in their order.
bool sorts_arrived(const LayerWalk& w) { return ep(w) > 1 && w.shape().local_experts() > 1; }

void sort_assignments(LayerWalk& w) { w.kernel(6.0 * static_cast<double>(routed(w) * kCountBytes), 3); }

// --- alltoall ---
void exchange(LayerWalk& w, int64_t bytes_of_a_row) {
  if (ep(w) > 1)
    w.visitor().wait(w.visitor().exchange(Axis::kEp, even_exchange(w.shape(), routed(w) * bytes_of_a_row)));
}

void all_to_all_dispatch(LayerWalk& w) {
  sort_assignments(w);
  share_numbers(w, Axis::kEp, w.shape().model.moe.num_experts);
  reorder(w, routed(w));
  exchange(w, sent_bytes(w, w.hidden()));
  if (sorts_arrived(w)) reorder(w, routed(w));
}
void all_to_all_combine(LayerWalk& w) {
  if (sorts_arrived(w)) reorder_back(w, routed(w));
  exchange(w, row_bytes(w, w.hidden()));
  reorder_back(w, routed(w));
  w.kernel(3 * w.rows(routed(w), w.hidden()) + w.stream_bytes(), 2);  // times the weights, added up
}
void all_to_all_combine_grad(LayerWalk& w) {
  w.kernel(5 * w.rows(routed(w), w.hidden()), 3);
  reorder_grad(w, routed(w));
  exchange(w, row_bytes(w, w.hidden()));
  if (sorts_arrived(w)) reorder_grad(w, routed(w));
}
void all_to_all_dispatch_grad(LayerWalk& w) {
  if (sorts_arrived(w)) reorder_grad(w, routed(w));
  exchange(w, row_bytes(w, w.hidden()));
  w.kernel(w.stream_bytes());
  w.kernel(3 * w.rows(routed(w), w.hidden()));
}

// --- what the others have in common: packed tokens, and sums of own experts ---
double numbers(const LayerWalk& w, int64_t rows) {  // one for each slot
  return static_cast<double>(rows * w.shape().model.moe.topk * kCountBytes);
}
double full(const LayerWalk& w, int64_t rows) { return w.rows(rows, w.hidden()); }

void pack(LayerWalk& w) { w.kernel(2 * w.rows(w.local_tokens(), packed(w)), 2); }

// Of `tokens` rows that arrived, those of their assignments that are this rank's.
void own_rows(LayerWalk& w, int64_t tokens) {
  w.kernel(26 * numbers(w, tokens), 10);
  reorder(w, routed(w));
}
void own_rows_grad(LayerWalk& w, int64_t tokens) {
  w.kernel(full(w, tokens));
  w.kernel(3 * full(w, routed(w)));
  w.kernel(7 * w.rows(tokens, packed(w)), 5);  // gradients of tokens and of weights meet
}
void own_sum(LayerWalk& w, int64_t tokens) {
  w.kernel(4 * numbers(w, tokens), 2);  // their weights
  w.kernel(2 * full(w, routed(w)));
  w.kernel(full(w, tokens));
  w.kernel(3 * full(w, routed(w)) + 2 * full(w, tokens));
}
void own_sum_grad(LayerWalk& w) {
  w.kernel(2 * full(w, routed(w)));
  w.kernel(6 * full(w, routed(w)), 3);
  w.kernel(2 * numbers(w, w.local_tokens()), 2);
}

// --- allgather ---
void gather_or_reduce(LayerWalk& w, Verb verb, int64_t bytes_of_a_row) {
  if (ep(w) > 1) w.call(Axis::kEp, verb, ep(w) * w.local_tokens() * bytes_of_a_row);
}
void all_gather_dispatch(LayerWalk& w) {
  share_numbers(w, Axis::kEp, 1);
  pack(w);
  gather_or_reduce(w, Verb::kAllGather, sent_bytes(w, packed(w)));
  own_rows(w, ep(w) * w.local_tokens());
}
void all_gather_combine(LayerWalk& w) {
  own_sum(w, ep(w) * w.local_tokens());
  gather_or_reduce(w, Verb::kReduceScatter, row_bytes(w, w.hidden()));
}
void all_gather_combine_grad(LayerWalk& w) {
  gather_or_reduce(w, Verb::kAllGather, row_bytes(w, w.hidden()));
  own_sum_grad(w);
}
void all_gather_dispatch_grad(LayerWalk& w) {
  own_rows_grad(w, ep(w) * w.local_tokens());
  gather_or_reduce(w, Verb::kReduceScatter, row_bytes(w, packed(w)));
}

// --- hops of packed tokens (packed_hop.h): to their places, the sums back, and the gradients of both ---
void find_places(LayerWalk& w, int64_t tokens) { w.kernel(9 * numbers(w, tokens), 8); }
void hop(LayerWalk& w, int64_t rows) {
  w.kernel(4 * w.rows(rows, packed(w)), 2);
  w.kernel(14 * numbers(w, rows), 5);
}
void hop_back(LayerWalk& w, int64_t left, int64_t rows) {
  w.kernel(full(w, left));
  w.kernel(3 * full(w, rows) + 2 * full(w, left));
}
void hop_back_grad(LayerWalk& w, int64_t rows) { w.kernel(2 * full(w, rows)); }
void hop_grad(LayerWalk& w, int64_t left, int64_t rows) {
  w.kernel(3 * w.rows(rows, packed(w)), 2);
  w.kernel(w.rows(left, packed(w)));
  w.kernel(3 * w.rows(rows, packed(w)));
}

// --- dedup: a hop between nodes, a hop inside the node ---
struct Hops {
  explicit Hops(const LayerWalk& w)
      : in_node(w.shape().ep_members_in_node()),
        nodes(ep(w) / in_node),
        left(w.local_tokens()),
        taken_in(nodes > 1 ? copies(w, nodes) : left),
        arrived(in_node > 1 ? copies(w, ep(w)) : taken_in) {}
  int64_t in_node, nodes;
  int64_t left;      // tokens of a rank
  int64_t taken_in;  // rows after the first hop ...
  int64_t arrived;   // ... and after the second
};

void between_nodes(LayerWalk& w, const Hops& hops, int64_t bytes_of_a_row) {
  const int64_t bytes = hops.taken_in * bytes_of_a_row;
  w.visitor().wait(w.visitor().exchange(
      Axis::kEp, {.logical = bytes, .in_node = 0, .across = bytes / hops.nodes * (hops.nodes - 1)}));
}
void inside_node(LayerWalk& w, const Hops& hops, int64_t bytes_of_a_row) {
  const int64_t bytes = hops.arrived * bytes_of_a_row;
  w.visitor().wait(w.visitor().exchange(
      Axis::kEp, {.logical = bytes, .in_node = bytes / hops.in_node * (hops.in_node - 1), .across = 0}));
}

void dedup_dispatch(LayerWalk& w) {
  const Hops hops(w);
  pack(w);
  if (hops.nodes > 1) find_places(w, hops.left);
  if (hops.in_node > 1) find_places(w, hops.left);
  share_numbers(w, Axis::kEp, (hops.nodes > 1 ? hops.nodes : 0) + (hops.in_node > 1 ? ep(w) : 0));
  if (hops.nodes > 1) {
    hop(w, hops.taken_in);
    between_nodes(w, hops, sent_bytes(w, packed(w)));
    w.kernel(2 * numbers(w, hops.taken_in));
    if (hops.in_node > 1) find_places(w, hops.taken_in);
  }
  if (hops.in_node > 1) {
    hop(w, hops.arrived);
    inside_node(w, hops, sent_bytes(w, packed(w)));
  }
  own_rows(w, hops.arrived);
}
void dedup_combine(LayerWalk& w) {
  const Hops hops(w);
  own_sum(w, hops.arrived);
  if (hops.in_node > 1) {
    inside_node(w, hops, row_bytes(w, w.hidden()));
    hop_back(w, hops.taken_in, hops.arrived);
  }
  if (hops.nodes > 1) {
    between_nodes(w, hops, row_bytes(w, w.hidden()));
    hop_back(w, hops.left, hops.taken_in);
  }
}
void dedup_combine_grad(LayerWalk& w) {
  const Hops hops(w);
  if (hops.nodes > 1) {
    hop_back_grad(w, hops.taken_in);
    between_nodes(w, hops, row_bytes(w, w.hidden()));
  }
  if (hops.in_node > 1) {
    hop_back_grad(w, hops.arrived);
    inside_node(w, hops, row_bytes(w, w.hidden()));
  }
  own_sum_grad(w);
}
void dedup_dispatch_grad(LayerWalk& w) {
  const Hops hops(w);
  own_rows_grad(w, hops.arrived);
  if (hops.in_node > 1) {
    inside_node(w, hops, row_bytes(w, packed(w)));
    hop_grad(w, hops.taken_in, hops.arrived);
  }
  if (hops.nodes > 1) {
    between_nodes(w, hops, row_bytes(w, packed(w)));
    hop_grad(w, hops.left, hops.taken_in);
  }
}

// --- rdep: one put to every owner ---
void put_to_owners(LayerWalk& w, int64_t bytes_of_a_row) {
  const int64_t row = bytes_of_a_row + kStampBytes, near = w.shape().ep_members_in_node();
  const int64_t each = copies(w, ep(w)) / ep(w) * row;
  w.visitor().wait(w.visitor().exchange(Axis::kEp, {.logical = each * (ep(w) - 1),
                                                    .in_node = each * (near - 1),
                                                    .across = each * (ep(w) - near),
                                                    .puts = ep(w) - 1}));
  w.kernel(2 * static_cast<double>(copies(w, ep(w)) * row));  // into the order of their sources
}

void rdep_dispatch(LayerWalk& w) {
  pack(w);
  if (ep(w) > 1) {
    w.kernel(static_cast<double>(2 * w.shape().model.moe.num_experts * kCountBytes), 2);
    find_places(w, w.local_tokens());
    hop(w, copies(w, ep(w)));
    put_to_owners(w, sent_bytes(w, packed(w)));
  }
  own_rows(w, copies(w, ep(w)));
}
void rdep_combine(LayerWalk& w) {
  own_sum(w, copies(w, ep(w)));
  if (ep(w) == 1) return;
  put_to_owners(w, row_bytes(w, w.hidden()));
  hop_back(w, w.local_tokens(), copies(w, ep(w)));
}
void rdep_combine_grad(LayerWalk& w) {
  if (ep(w) > 1) {
    hop_back_grad(w, copies(w, ep(w)));
    put_to_owners(w, row_bytes(w, w.hidden()));
  }
  own_sum_grad(w);
}
void rdep_dispatch_grad(LayerWalk& w) {
  own_rows_grad(w, copies(w, ep(w)));
  if (ep(w) == 1) return;
  put_to_owners(w, row_bytes(w, packed(w)));
  hop_grad(w, w.local_tokens(), copies(w, ep(w)));
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

void reorder(LayerWalk& w, int64_t rows) { copy_rows(w, rows, w.hidden()); }
void reorder_back(LayerWalk& w, int64_t rows) {
  const double index = static_cast<double>(rows * kCountBytes);
  w.kernel(index);  // the inverse of the order
  w.kernel(3 * index);
  reorder(w, rows);
}
void reorder_grad(LayerWalk& w, int64_t rows) {
  w.kernel(w.rows(rows, w.hidden()));  // zeros
  w.kernel(3 * w.rows(rows, w.hidden()));
}

void share_numbers(LayerWalk& w, Axis axis, int64_t numbers) {
  const int size = w.shape().dims.size(axis);
  if (size > 1) w.call(axis, Verb::kAllGather, size * numbers * kCountBytes);
}

}  // namespace ranklab
