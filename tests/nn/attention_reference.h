// Holds causal attention, saved or recomputed in backward, to plain operators: outputs and gradients.
#pragma once
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "core/nn/attention/attention.h"
#include "tests/golden/golden.h"

namespace ranklab {

// `base` [S, B, (heads + 2 groups) head_dim] in fp64, relative 1e-12.
inline void expect_attention_is_the_reference(const AttentionShape& shape, const at::Tensor& base, bool recompute) {
  const int64_t seq = base.size(0);
  SCOPED_TRACE(testing::Message() << seq << " positions, window " << shape.window << (recompute ? ", recomputed" : ""));
  const RopeTable rope = make_rope_table(seq, shape.head_dim, 1e4, at::kDouble);
  const at::Tensor grad = golden::wave({seq, base.size(1), shape.heads * shape.head_dim}, 0.1);
  const auto run = [&](const auto& attention) {
    at::Tensor qkv = base.clone().requires_grad_();
    const at::Tensor out = attention(qkv);
    return std::pair(out.detach(), torch::autograd::grad({out}, {qkv}, {grad})[0]);
  };
  const auto want = run([&](const at::Tensor& qkv) { return causal_attention_reference(qkv, shape, rope); });
  const auto got = run([&](const at::Tensor& qkv) {
    return recompute ? recomputable_causal_attention(qkv, shape, rope).out : causal_attention(qkv, shape, rope);
  });
  EXPECT_LT(golden::relative_error(got.first, want.first), 1e-12);
  EXPECT_LT(golden::relative_error(got.second, want.second), 1e-12);
}

}  // namespace ranklab
