// The per-thread code of SwiGLU: a thread handles a pack of a row's gate half and the same pack of its up half.
// Compiles for a GPU and for a test on a CPU. Thread rule: pure except for what it writes.
#pragma once
#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

// gate_up rows are [gate | up], each `cols` wide; out = gate * sigmoid(gate) * up.
template <typename T>
struct SwigluTask {
  int64_t rows = 0, cols = 0;
  const T* gate_up = nullptr;
  const T* grad_out = nullptr;  // backward
  T* out = nullptr;             // forward
  T* grad_gate_up = nullptr;    // backward
};

template <typename W>
RANKLAB_BOTH W sigmoid(W x) {
  return W{1} / (W{1} + power_of_e(-x));
}

template <int kItems, typename T>
RANKLAB_BOTH void swiglu(const SwigluTask<T>& task, int64_t row, int64_t col) {
  Wide<T> gate[kItems], up[kItems];
  const T* from = task.gate_up + 2 * row * task.cols + col;
  load<kItems>(from, gate);
  load<kItems>(from + task.cols, up);
  RANKLAB_UNROLL
  for (int i = 0; i < kItems; ++i) up[i] *= gate[i] * sigmoid(gate[i]);
  store<kItems>(up, task.out + row * task.cols + col);
}

template <int kItems, typename T>
RANKLAB_BOTH void swiglu_grad(const SwigluTask<T>& task, int64_t row, int64_t col) {
  using W = Wide<T>;
  W gate[kItems], up[kItems], grad[kItems];
  const int64_t at = 2 * row * task.cols + col;
  load<kItems>(task.gate_up + at, gate);
  load<kItems>(task.gate_up + at + task.cols, up);
  load<kItems>(task.grad_out + row * task.cols + col, grad);
  RANKLAB_UNROLL
  for (int i = 0; i < kItems; ++i) {
    const W s = sigmoid(gate[i]), g = gate[i];
    gate[i] = grad[i] * up[i] * s * (W{1} + g * (W{1} - s));
    up[i] = grad[i] * g * s;
  }
  store<kItems>(gate, task.grad_gate_up + at);
  store<kItems>(up, task.grad_gate_up + at + task.cols);
}

}  // namespace ranklab::rows
