// The collectives and copies of each token dispatcher (core/parallel/expert), for experts that get equally many tokens:
// dispatch, combine and the gradients of both. e bytes an element, h hidden, T_l tokens of a rank, K experts of a
// token:
//   alltoall   T_l K h e each way, of which (ep-1)/ep leave the rank (GShard, arXiv 2006.16668)
//   allgather  ep T_l (h + 2K) e gathered, ep T_l h e reduced, whatever K is
//   dedup      T_l (h + 2K) e for each node of a token, then for each rank of a token inside the node
//   rdep       T_l (h + 2K) e and 16 bytes for each rank of a token, put one after another
// A dispatcher is a row of kDispatchWalks. Thread rule: one thread.
#pragma once
#include "core/plan/layer_walk.h"

namespace ranklab {

struct DispatchWalk {
  const char* name;
  void (*dispatch)(LayerWalk&);
  void (*combine)(LayerWalk&);
  void (*combine_grad)(LayerWalk&);
  void (*dispatch_grad)(LayerWalk&);
};
// That of shape.moe_dispatcher. Throws kInternal for a name without one.
const DispatchWalk& dispatch_walk(const StepShape& shape);

// Rows into another order; back from it; and the gradient of either, added up.
void reorder(LayerWalk& walk, int64_t rows);
void reorder_back(LayerWalk& walk, int64_t rows);
void reorder_grad(LayerWalk& walk, int64_t rows);
// What every rank tells every other one: `numbers` of each.
void share_numbers(LayerWalk& walk, Axis axis, int64_t numbers);

}  // namespace ranklab
