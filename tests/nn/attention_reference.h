// Compares causal attention, saved or recomputed in backward, with plain operators: outputs and gradients, those of
// sinks among them.
#pragma once
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "core/nn/attention/attention.h"
#include "tests/golden/golden.h"

namespace ranklab {

// `base` [S, B, (heads + 2 groups) head_dim] in fp64, relative 1e-12.
inline void expect_attention_is_the_reference(const AttentionShape& shape, const at::Tensor& base, bool recompute,
                                              const at::Tensor& sinks = {}) {
  const int64_t seq = base.size(0);
  SCOPED_TRACE(testing::Message() << seq << " positions, window " << shape.window << (recompute ? ", recomputed" : ""));
  const RopeTable rope = make_rope_table(seq, shape.head_dim, 1e4, at::kDouble);
  const at::Tensor grad = golden::wave({seq, base.size(1), shape.heads * shape.head_dim}, 0.1);
  const auto run = [&](const auto& attention) {
    std::vector<at::Tensor> in = {base.clone().requires_grad_()};
    if (sinks.defined()) in.push_back(sinks.clone().requires_grad_());
    const at::Tensor out = attention(in[0], sinks.defined() ? in[1] : sinks);
    std::vector<at::Tensor> results = torch::autograd::grad({out}, in, {grad});
    results.push_back(out.detach());
    return results;
  };
  const auto want = run([&](const at::Tensor& qkv, const at::Tensor& sink) {
    return causal_attention_reference(qkv, shape, rope, sink);
  });
  const auto got = run([&](const at::Tensor& qkv, const at::Tensor& sink) {
    return recompute ? recomputable_causal_attention(qkv, shape, rope, sink).out
                     : causal_attention(qkv, shape, rope, sink);
  });
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LT(golden::relative_error(got[i], want[i]), 1e-12) << i;
}

}  // namespace ranklab
