// What tests of recurrences over a sequence share: random inputs, documents, and outputs and gradients that must be
// equal. Thread rule: pure.
#pragma once
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "core/sim/aten.h"

namespace ranklab::recurrence {

using Tensors = std::vector<at::Tensor>;

inline at::Tensor random(std::vector<int64_t> shape, double scale = 1) {
  return at::randn(shape, at::kDouble).mul_(scale).requires_grad_();
}

// Of a sum that weighs every element differently.
inline Tensors gradients(const at::Tensor& out, const Tensors& leaves) {
  const at::Tensor weights = at::arange(out.numel(), at::kDouble).mul_(0.37).cos_().view(out.sizes());
  return torch::autograd::grad({(out * weights).sum()}, leaves);
}

inline void expect_near(const at::Tensor& got, const at::Tensor& want, double tolerance = 1e-10) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LT((got - want).abs().max().item<double>(), tolerance * (1 + want.abs().max().item<double>()));
}

// `lives`: no gradient is 0.
inline void expect_same(const at::Tensor& got, const at::Tensor& want, const Tensors& leaves, bool lives = true) {
  expect_near(got, want);
  const Tensors got_grads = gradients(got, leaves), want_grads = gradients(want, leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_GT(want_grads[i].abs().max().item<double>(), lives ? 1e-6 : -1);
    expect_near(got_grads[i], want_grads[i]);
  }
}

inline at::Tensor segments_of(const std::vector<std::vector<int64_t>>& sequences) {
  Tensors rows;
  for (const std::vector<int64_t>& sequence : sequences) rows.push_back(at::tensor(sequence, at::kLong));
  return at::stack(rows, 1);
}

// `lengths` of consecutive documents.
inline std::vector<int64_t> documents(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < lengths.size(); ++i)
    numbers.insert(numbers.end(), static_cast<size_t>(lengths[i]), static_cast<int64_t>(i));
  return numbers;
}

}  // namespace ranklab::recurrence
