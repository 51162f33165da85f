// What the tests of a device's kernels share: on the device itself, or on a CPU that runs their bodies in loops, each
// fused function against the same in plain ATen ops in fp64.
#pragma once
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab::device_cases {

using Tensors = std::vector<at::Tensor>;
using Layer = std::function<Tensors(const Tensors&)>;

inline const std::vector<at::ScalarType> kTypes = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};

// Relative to the largest result.
inline double tolerance(at::ScalarType type) {
  if (type == at::kDouble) return 1e-12;
  if (type == at::kFloat) return 5e-6;
  return type == at::kBFloat16 ? 1.2e-2 : 1.5e-3;
}

inline void expect_close(const at::Tensor& got_in, const at::Tensor& want_in, double most, const std::string& what) {
  const at::Tensor got = got_in.detach().cpu().to(at::kDouble).reshape({-1});
  const at::Tensor want = want_in.detach().cpu().to(at::kDouble).reshape({-1});
  ASSERT_EQ(got.numel(), want.numel()) << what;
  if (got.numel() == 0) return;
  ASSERT_TRUE(at::isfinite(got).all().item<bool>()) << what << ": not finite";
  const double size = std::max(want.abs().max().item<double>(), 0.05);  // not of what cancels
  const at::Tensor error = (got - want).abs() / size;
  const int64_t worst = error.argmax().item<int64_t>();
  EXPECT_LE(error[worst].item<double>(), most)
      << what
      << strprintf(": element %lld of %lld is %.9g, want %.9g", static_cast<long long>(worst),
                   static_cast<long long>(got.numel()), got[worst].item<double>(), want[worst].item<double>());
}

// Numbers of this type on the device, dense; `shifted`: not at a multiple of 16 bytes.
inline at::Tensor sample(at::IntArrayRef shape, double salt, at::ScalarType type, at::Device device,
                         bool shifted = false, double scale = 1, double offset = 0) {
  const at::Tensor x = golden::wave(shape, salt, scale, offset).to(type).to(device);
  if (!shifted) return x;
  at::Tensor room = at::empty({x.numel() + 1}, x.options());
  return room.narrow(0, 1, x.numel()).copy_(x.reshape({-1})).view(shape);
}

// Results and the gradients of sum(result_k * wave_k).
inline Tensors run(const Layer& layer, const Tensors& inputs) {
  Tensors leaves;
  for (const at::Tensor& x : inputs) leaves.push_back(x.detach().requires_grad_(true));
  Tensors results = layer(leaves);
  Tensors seeds;
  for (size_t k = 0; k < results.size(); ++k)
    seeds.push_back(golden::wave(results[k].sizes(), 0.3 + static_cast<double>(k)).to(results[k].options()));
  torch::autograd::backward(results, seeds);
  for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

// `fast` on the inputs against `plain` on the same numbers in fp64; `slack`: roundings that add up.
inline void expect_same(const Layer& fast, const Layer& plain, const Tensors& inputs, const std::string& what,
                        double slack = 1) {
  Tensors wide;
  for (const at::Tensor& x : inputs) wide.push_back(x.to(at::kDouble));
  const Tensors got = run(fast, inputs), want = run(plain, wide);
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    expect_close(got[k], want[k], slack * tolerance(inputs[0].scalar_type()),
                 what + " " + c10::toString(inputs[0].scalar_type()) + ", result " + std::to_string(k));
  }
}

void check_norms(at::Device device);
void check_head_norms(at::Device device);
void check_swiglu(at::Device device);
void check_heads(at::Device device);      // split and merge
void check_attention(at::Device device);  // with them, by the device's softmax part
void check_softmax_merges(at::Device device);
void check_latent_attention(at::Device device);
void check_loss(at::Device device);
void check_padded_loss(at::Device device);
void check_squares(at::Device device);
void check_adamw(at::Device device);
void check_sums(at::Device device);
void check_repeats(at::Device device);  // the same bits in every run

}  // namespace ranklab::device_cases
