// The per-lane code of cross entropy over a row of logits: one pass with a running maximum and the sum of exponentials
// relative to it (Milakov and Gimelshein 2018, arXiv 1805.02867), and in backward (softmax - target) * gradient,
// recomputed from the logits. Only three numbers are saved per row; there is no copy of the logits, in fp32 or
// otherwise. Compiles for a GPU and for a test on a CPU. Thread rule: pure except for what it writes.
#pragma once
#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

// logits [rows, width], of which the columns from `real` on are padding; column 0 is vocabulary entry `begin`.
template <typename T>
struct LossTask {
  int64_t rows = 0, width = 0, real = 0, begin = 0;
  const T* logits = nullptr;
  const int64_t* targets = nullptr;  // [rows]
  // Forward: [3, rows] maximum, sum of exp(logit - maximum), the target's logit (0 if it is not among these columns).
  Wide<T>* statistics = nullptr;
  // Backward: per row the global maximum, and the factor that turns exp(logit - maximum) into the gradient; 0: no
  // gradient.
  const Wide<T>* maximum = nullptr;
  const Wide<T>* factor = nullptr;
  const Wide<T>* grad_loss = nullptr;  // one number
  T* grad = nullptr;                   // [rows, width]

  RANKLAB_BOTH bool owns(int64_t row) const { return targets[row] >= begin && targets[row] - begin < real; }
};

template <typename W>
struct MaxSum {
  W maximum, sum;
};
template <typename W>
RANKLAB_BOTH MaxSum<W> nothing_yet() {
  return {-static_cast<W>(INFINITY), W{0}};
}
// Merges two partial results. Merging two empty ones gives nothing_yet().
template <typename W>
RANKLAB_BOTH MaxSum<W> joined(MaxSum<W> a, MaxSum<W> b) {
  const W maximum = a.maximum < b.maximum ? b.maximum : a.maximum;
  if (maximum == -static_cast<W>(INFINITY)) return a;
  return {maximum, a.sum * power_of_e(a.maximum - maximum) + b.sum * power_of_e(b.maximum - maximum)};
}

// Packs that a lane loads at once.
constexpr int kLossPacks = 2;

// Processes every lanes-th pack of a row, starting at `lane`.
template <int kItems, typename T>
RANKLAB_BOTH MaxSum<Wide<T>> max_sum_of_share(const LossTask<T>& task, int64_t row, int lane, int lanes) {
  using W = Wide<T>;
  const W nothing = -static_cast<W>(INFINITY);
  MaxSum<W> all = nothing_yet<W>();
  const T* logits = task.logits + row * task.width;
  const int64_t stride = static_cast<int64_t>(lanes) * kItems;
  for (int64_t col = static_cast<int64_t>(lane) * kItems; col < task.real; col += kLossPacks * stride) {
    W x[kLossPacks * kItems];
    RANKLAB_UNROLL
    for (int p = 0; p < kLossPacks; ++p) {
      const int64_t at = col + p * stride;
      if (at < task.real) load<kItems>(logits + at, x + p * kItems);
      RANKLAB_UNROLL
      for (int i = 0; i < kItems; ++i) x[p * kItems + i] = at + i < task.real ? x[p * kItems + i] : nothing;
    }
    W maximum = all.maximum;
    RANKLAB_UNROLL
    for (int i = 0; i < kLossPacks * kItems; ++i) maximum = maximum < x[i] ? x[i] : maximum;
    if (maximum == nothing) continue;
    W sum = all.sum * power_of_e(all.maximum - maximum);
    RANKLAB_UNROLL
    for (int i = 0; i < kLossPacks * kItems; ++i) sum += power_of_e(x[i] - maximum);
    all = {maximum, sum};
  }
  return all;
}

template <typename T>
RANKLAB_BOTH void write_statistics(const LossTask<T>& task, int64_t row, MaxSum<Wide<T>> all) {
  task.statistics[row] = all.maximum;
  task.statistics[task.rows + row] = all.sum;
  task.statistics[2 * task.rows + row] =
      task.owns(row) ? widened(task.logits[row * task.width + task.targets[row] - task.begin]) : Wide<T>{0};
}

template <int kItems, typename T>
RANKLAB_BOTH void loss_grad(const LossTask<T>& task, int64_t row, int64_t col) {
  using W = Wide<T>;
  W x[kItems];
  load<kItems>(task.logits + row * task.width + col, x);
  const W grad = *task.grad_loss, factor = task.factor[row] * grad, maximum = task.maximum[row];
  const int64_t target = task.owns(row) ? task.targets[row] - task.begin - col : -1;
  RANKLAB_UNROLL
  for (int i = 0; i < kItems; ++i) {
    const bool shares = factor != 0 && col + i < task.real;  // padding may hold anything, NaN included
    x[i] = (shares ? power_of_e(x[i] - maximum) * factor : W{0}) - (i == target ? grad : W{0});
  }
  store<kItems>(x, task.grad + row * task.width + col);
}

}  // namespace ranklab::rows
