// The recurrence of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060), which summarizes each head's past in one matrix M [N,
// P]. A position decays M, adds its own contribution, and reads M:
//   M <- e^g M + B (step x)^T;  y = M^T C + D x,     step = max(softplus(dt + bias), min_step),  g = -e^A step
// x [P] belongs to the head, and B and C [N] to its group. Computed chunk by chunk; within a chunk everything is matrix
// products (the state space duality, section 6 there). Sums are in fp32 for 16-bit tensors. Cost: linear in S
// (state_space_flops()). Memory: saves only its inputs. Legend: S positions, B sequences. Thread rule: its rank's
// thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

struct StateSpaceShape {
  int64_t heads = 1, groups = 1;  // neighbouring heads share a group
  int64_t head_dim = 1;           // P
  int64_t state_dim = 1;          // N
  double min_step = 0;

  // The shape of one rank, where `ranks` ranks divide groups and heads among themselves.
  StateSpaceShape over(int ranks) const { return {heads / ranks, groups / ranks, head_dim, state_dim, min_step}; }
  int64_t inner_width() const { return heads * head_dim; }
  int64_t group_width() const { return groups * state_dim; }
  int64_t convolved_width() const { return inner_width() + 2 * group_width(); }
};

struct StateSpaceInput {
  at::Tensor xbc;      // [S, B, heads P + 2 groups N]: x, B, C
  at::Tensor dt;       // [S, B, heads]
  at::Tensor a_log;    // [heads], A
  at::Tensor dt_bias;  // [heads]
  at::Tensor d;        // [heads], D
};

// -> [S, B, heads P]. `segment_SB`: int64 [S, B or 1], or undefined; M is reset to 0 where a new segment begins.
at::Tensor state_space(const StateSpaceInput& in, const StateSpaceShape& shape, const at::Tensor& segment_SB = {});

// Forward only, for positions that continue a sequence: `state` [B, heads, N, P] is the state after the positions
// before, and on return the state after these.
at::Tensor state_space_after(const StateSpaceInput& in, const StateSpaceShape& shape, at::Tensor& state);

// The definition above, position by position, in plain ATen ops; the chunked form is tested against it.
at::Tensor state_space_reference(const StateSpaceInput& in, const StateSpaceShape& shape,
                                 const at::Tensor& segment_SB = {});

}  // namespace ranklab
