// Lesson 5, exercise: move the weight gradients.
//
// A backward has two halves:
//
//   order.input_grad(i)     B: the gradient of the rank's input. The previous rank waits for it.
//                           Needs input_grad(i) of the next rank, and this rank's own forward(i)
//   order.weight_grad(i)    W: the gradient of the rank's weights. Nobody waits for it before the step ends.
//                           Needs this rank's own input_grad(i)
//
// From forward(i) to weight_grad(i) the rank holds the activations of microbatch i. The code below is 1F1B, which
// does both halves together. Its rank 0 holds `ranks` activations, its last rank one: that leaves room to defer W until
// the rank would be idle. Reduce the time as far as the check requires, and hold no more than `ranks` anywhere.
//
// It must also work with fewer microbatches than ranks, and on one rank alone.
//
// Check with:  ./ranklab lesson check 5
#include "exercise.h"

using namespace ranklab::lesson;

extern "C" void write_order(Order& order, int rank, int ranks, int microbatches) {
  // ---- your turn: this is 1F1B, split its backward and move the weight gradients ----
  const int warm_up = std::min(ranks - 1 - rank, microbatches);
  int next = 0;  // microbatch to forward
  while (next < warm_up) order.forward(next++);
  for (int done = 0; done < microbatches; ++done) {
    if (next < microbatches) order.forward(next++);
    order.backward(done);
  }
  // ---- end of your turn ----
}
