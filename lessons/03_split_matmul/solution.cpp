// Lesson 3, solution. Each rank knows only what its own columns of A contributed to the gradient of the norm's output:
// a partial sum. It is completed where it leaves the split part: the conjugate of `enter`.
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
    tp.all_reduce(mine);
  } else {
    tp.reduce_scatter(all, mine);
  }
}

// The gradient of the norm's weights, computed from the tokens this rank holds. The weights are the same on all ranks.
extern "C" void norm_gradient(Comm& tp, Outside outside, std::span<double> gradient) {
  if (outside == Outside::kMyTokens) tp.all_reduce(gradient);
}
