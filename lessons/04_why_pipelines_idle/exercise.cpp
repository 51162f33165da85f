// Lesson 4, exercise: 1F1B.
//
// Write the list of actions of one rank. Rank 0 has the first layers, rank (ranks - 1) the last. You only define the
// order in which this rank works; what an entry needs from a neighbour, it waits for:
//
//   order.forward(i)     needs forward(i) of the previous rank
//   order.backward(i)    needs backward(i) of the next rank, and this rank's own forward(i)
//
// From forward(i) to backward(i) the rank holds the activations of microbatch i. The code below is GPipe: it holds
// all of them. 1F1B has three parts:
//
//   warm-up    forwards, until the first backward can start: the further from the last rank, the more
//   steady     one forward, one backward, alternating
//   drain      the remaining backwards
//
// It must also work with fewer microbatches than ranks, and on one rank alone.
//
// Check with:  ./ranklab lesson check 4
#include "exercise.h"

using namespace ranklab::lesson;

extern "C" void write_order(Order& order, [[maybe_unused]] int rank, [[maybe_unused]] int ranks, int microbatches) {
  // ---- your turn: this is GPipe, make it 1F1B ----
  for (int i = 0; i < microbatches; ++i) order.forward(i);
  for (int i = 0; i < microbatches; ++i) order.backward(i);
  // ---- end of your turn ----
}
