// The few elementwise and row-wise loops of a transformer that ATen runs as many separate passes on a CPU, each as one
// pass over rows that stay in cache: (add +) RMSNorm, SwiGLU, the QKV split with rotary embedding, and sums of squares.
// Torch-free; nn/*.h wraps them as autograd functions, next to a reference in plain ATen ops with which tests compare
// them. Sums run in a fixed number of lanes and without fused multiply-add, so their bits are the same on every x86-64
// machine and vector width. Cost: one read and one write of each operand. Thread rule: pure functions.
#pragma once
#include <cstdint>

namespace ranklab::kernels {

struct RowShape {
  int64_t rows = 0;
  int64_t cols = 0;
};

struct RmsNormArgs {
  RowShape shape;
  double epsilon = 0;        // as in the forward pass
  double weight_offset = 0;  // added to the weight, in the type of the computation
};
// sum = x + branch (branch null: sum is not written and x is normalized); out = sum / rms(sum) * weight;
// inv_rms[row] is kept for backward.
void rms_norm_forward(RmsNormArgs args, const float* x, const float* branch, const float* weight, float* sum,
                      float* out, float* inv_rms);
void rms_norm_forward(RmsNormArgs args, const double* x, const double* branch, const double* weight, double* sum,
                      double* out, double* inv_rms);

// out = sum * inv_rms * weight: recomputes the forward's result, bit for bit, from the tensors saved for backward.
void rms_norm_recompute(RmsNormArgs args, const float* sum, const float* weight, const float* inv_rms, float* out);
void rms_norm_recompute(RmsNormArgs args, const double* sum, const double* weight, const double* inv_rms, double* out);

// grad_in = d(norm)(grad_out) + grad_sum (null: nothing is added). grad_weight is overwritten, not added to.
void rms_norm_backward(RmsNormArgs args, const float* grad_out, const float* grad_sum, const float* sum,
                       const float* weight, const float* inv_rms, float* grad_in, float* grad_weight);
void rms_norm_backward(RmsNormArgs args, const double* grad_out, const double* grad_sum, const double* sum,
                       const double* weight, const double* inv_rms, double* grad_in, double* grad_weight);

// gate_up rows are [gate | up], each shape.cols wide; out = gate * sigmoid(gate) * up.
void swiglu_forward(RowShape shape, const float* gate_up, float* out);
void swiglu_forward(RowShape shape, const double* gate_up, double* out);
// out (null: not needed) receives the recomputed forward result, bit for bit; it may alias grad_out.
void swiglu_backward(RowShape shape, const float* grad_out, const float* gate_up, float* grad_gate_up,
                     float* out = nullptr);
void swiglu_backward(RowShape shape, const double* grad_out, const double* gate_up, double* grad_gate_up,
                     double* out = nullptr);

struct QkvShape {
  int64_t seq = 0, batch = 0, heads = 0, groups = 0, head_dim = 0;
  int64_t table_stride = 0;  // offset from one sequence's angles to the next one's; 0: all sequences have the same

  int64_t angles_of(int64_t b, int64_t s) const { return b * table_stride + s * (head_dim / 2); }
};
// Element strides of a [batch, head, seq, head_dim] tensor whose last dim is dense.
struct HeadStrides {
  int64_t batch = 0, head = 0, seq = 0;

  int64_t of(int64_t b, int64_t h, int64_t s) const { return b * batch + h * head + s * seq; }
};
// qkv [S, B, (heads + 2 groups) * head_dim] -> q [B, heads, S, D], k and v [B, groups, S, D], dense; q and k rotated by
// position with cos and sin [S, D/2] or [B, S, D/2] (null: not rotated). Halves convention: (a, b) -> (a cos - b sin, a
// sin + b cos).
void split_qkv(QkvShape shape, const float* qkv, const float* cos, const float* sin, float* q, float* k, float* v);
void split_qkv(QkvShape shape, const double* qkv, const double* cos, const double* sin, double* q, double* k,
               double* v);
// The adjoint: gathers the three gradients into grad_qkv, rotating back.
struct HeadStrides3 {
  HeadStrides q, k, v;
};
void merge_qkv(QkvShape shape, HeadStrides3 strides, const float* q, const float* k, const float* v, const float* cos,
               const float* sin, float* qkv);
void merge_qkv(QkvShape shape, HeadStrides3 strides, const double* q, const double* k, const double* v,
               const double* cos, const double* sin, double* qkv);

// Sum of squares in fp64.
double sum_of_squares(const float* x, int64_t count);
double sum_of_squares(const double* x, int64_t count);

}  // namespace ranklab::kernels
