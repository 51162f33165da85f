// Lesson 3, exercise: find the missing collective.
//
// An MLP, y = act(norm(x) A) B, split over 8 ranks: each has an eighth of the columns of A and the same rows of B.
// Between the arrows, a rank works alone. All communication is in the five functions below.
//
//                        the split part
//   x -> norm --enter--> . A -> act -> . B --leave--> y          forward
//    dx <- norm <--enter_backward-- . A^T <- act <- . B^T <--leave_backward-- dy
//
// It computes the right y. But train with it and the ranks drift apart: one of the five lacks a collective, in both
// modes. Every collective that goes one way in forward has a conjugate that goes the other way in backward; look for
// the one that is alone.
//
// Check with:  ./ranklab lesson check 3
#include "exercise.h"

using namespace ranklab::lesson;

// Forward, into the split part: every rank needs all tokens for its columns.
extern "C" void enter(Comm& tp, Outside outside, std::span<const double> mine, std::span<double> all) {
  if (outside == Outside::kAllTokens) {
    copy(mine, all);
  } else {
    tp.all_gather(mine, all);
  }
}

// Forward, out of it: `all` is a partial sum, one term of eight.
extern "C" void leave(Comm& tp, Outside outside, std::span<const double> all, std::span<double> mine) {
  if (outside == Outside::kAllTokens) {
    copy(all, mine);
    tp.all_reduce(mine);
  } else {
    tp.reduce_scatter(all, mine);
  }
}

// Backward, into the split part from behind: the gradient of the output.
extern "C" void leave_backward(Comm& tp, Outside outside, std::span<const double> mine, std::span<double> all) {
  if (outside == Outside::kAllTokens) {
    copy(mine, all);
  } else {
    tp.all_gather(mine, all);
  }
}

// Backward, out of it at the front: the gradient of the norm's output.
extern "C" void enter_backward(Comm& tp, Outside outside, std::span<const double> all, std::span<double> mine) {
  if (outside == Outside::kAllTokens) {
    copy(all, mine);
  } else {
    copy(my_part(tp, all), mine);
  }
}

// The gradient of the norm's weights, computed from the tokens this rank holds. The weights are the same on all ranks.
extern "C" void norm_gradient(Comm& tp, Outside outside, std::span<double> gradient) {
  if (outside == Outside::kMyTokens) tp.all_reduce(gradient);
}
