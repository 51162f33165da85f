// The gated delta rule (Yang et al. 2024, arXiv 2412.06464): attention without softmax, which summarizes the past in
// one matrix M [Dk, Dv] per head. A position decays M, replaces what M holds for the position's key by the position's
// value, to the degree given by beta, and reads M with the query:
//   M <- e^g M;  M <- M + k (beta (v - M^T k))^T;  o = M^T q,     g = -e^A softplus(a + dt),  beta = sigmoid(b)
// Keys and queries are normalized to length 1, and queries are divided by sqrt(Dk). Computed chunk by chunk; within a
// chunk everything is matrix products (the WY representation, Yang et al. 2024, arXiv 2406.06484). Sums are in fp32 for
// 16-bit tensors. Cost: linear in S (delta_rule_flops()). Memory: saves only its inputs. Legend: S positions, B
// sequences, Hk heads of keys and queries, Hv heads of values (each key head serves Hv / Hk neighbours). Thread rule:
// its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

struct DeltaShape {
  int64_t key_heads = 1, value_heads = 1, key_dim = 1, value_dim = 1;

  // The shape of one rank, where `ranks` ranks divide the heads among themselves.
  DeltaShape over(int ranks) const { return {key_heads / ranks, value_heads / ranks, key_dim, value_dim}; }
  int64_t key_width() const { return key_heads * key_dim; }
  int64_t value_width() const { return value_heads * value_dim; }
  int64_t convolved_width() const { return 2 * key_width() + value_width(); }
};

struct DeltaInput {
  at::Tensor qkv;      // [S, B, (2 Hk Dk) + Hv Dv]: queries, keys, values
  at::Tensor gates;    // [S, B, 2 Hv]: b, then a
  at::Tensor a_log;    // [Hv], A
  at::Tensor dt_bias;  // [Hv], dt
};

// -> [S, B, Hv Dv]. `segment_SB`: int64 [S, B or 1], or undefined; M is reset to 0 where a new segment begins.
at::Tensor gated_delta_rule(const DeltaInput& in, const DeltaShape& shape, const at::Tensor& segment_SB = {});

// Forward only, for positions that continue a sequence: `memory` [B, Hv, Dk, Dv] is the state after the positions
// before, and on return the state after these.
at::Tensor gated_delta_rule_after(const DeltaInput& in, const DeltaShape& shape, at::Tensor& memory);

// The definition above, position by position, in plain ATen ops; the chunked form is tested against it.
at::Tensor gated_delta_rule_reference(const DeltaInput& in, const DeltaShape& shape, const at::Tensor& segment_SB = {});

}  // namespace ranklab
