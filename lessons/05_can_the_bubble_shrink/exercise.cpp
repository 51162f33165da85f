// Lesson 5, exercise: move the weight gradients.
//
// A backward has two halves:
//
//   order.input_grad(i)     B: the gradient of the rank's input. The rank before waits for it.
//                           Needs input_grad(i) of the rank after, and this rank's own forward(i)
//   order.weight_grad(i)    W: the gradient of the rank's weights. Nobody waits for it before the step ends.
//                           Needs this rank's own input_grad(i)
//
// From forward(i) to weight_grad(i) the rank holds the activations of microbatch i. What stands below is 1F1B, which
// does both halves in one go. Its rank 0 holds `ranks` activations, its last rank one: that is room to put W off until
// the rank would stand idle. Get the time down as far as the check wants it, and hold no more than `ranks` anywhere.
//
// It must also work with fewer microbatches than ranks, and on one rank alone.
//
// Check with:  ranklab lesson check 5
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
