// Layers against values that torch.nn.functional computed (tests/golden/make_golden.py).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/nn/activation.h"
#include "core/nn/attention/attention.h"
#include "core/nn/norm.h"
#include "core/nn/rope.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;
using golden::wave;

constexpr double kTolerance = 1e-11;  // the files hold 13 digits

at::Tensor leaf(at::IntArrayRef shape, double salt, double scale = 1.0, double offset = 0.0) {
  return wave(shape, salt, scale, offset).requires_grad_(true);
}

const golden::Golden& layers() {
  static const golden::Golden kGolden = golden::load("layers.txt");
  return kGolden;
}

void expect_golden(const std::string& name, const at::Tensor& got) {
  ASSERT_EQ(got.sizes(), layers()[name].sizes()) << name;
  EXPECT_LT(relative_error(got, layers()[name]), kTolerance) << name;
}

TEST(Golden, RmsNorm) {
  const at::Tensor x = leaf({3, 2, 10}, 0.1), w = leaf({10}, 0.2, 0.5, 1.0);
  const at::Tensor y = add_rms_norm(x, {}, w, {1e-5}).normed;
  torch::autograd::backward({y}, {wave(y.sizes(), 0.3)});
  expect_golden("rms_norm.y", y);
  expect_golden("rms_norm.dx", x.grad());
  expect_golden("rms_norm.dw", w.grad());
}

TEST(Golden, Swiglu) {
  const at::Tensor x = leaf({3, 2, 12}, 0.4, 3.0);
  const at::Tensor y = swiglu(x);
  torch::autograd::backward({y}, {wave(y.sizes(), 0.5)});
  expect_golden("swiglu.y", y);
  expect_golden("swiglu.dx", x.grad());
}

TEST(Golden, Rope) {
  const at::Tensor x = leaf({1, 2, 5, 6}, 0.6);
  const at::Tensor y = apply_rope(x, make_rope_table(5, 6, 100.0, at::TensorOptions().dtype(at::kDouble)));
  torch::autograd::backward({y}, {wave(y.sizes(), 0.7)});
  expect_golden("rope.y", y);
  expect_golden("rope.dx", x.grad());
}

// As a layer has them: positions first, heads of one pair, one sequence.
TEST(Rope, NumbersOfAHeadLieSideBySideWhateverTheirLayoutWas) {
  const at::Tensor qkv = wave({5, 1, 3 * 2}, 0.3);
  const at::Tensor q = qkv.view({5, 1, 3, 2}).permute({1, 2, 0, 3});
  const at::Tensor y = apply_rope(q, make_rope_table(5, 2, 100.0, at::TensorOptions().dtype(at::kDouble)));
  EXPECT_TRUE(y.is_contiguous()) << y.strides();
}

TEST(Golden, Attention) {
  struct Case {
    const char* name;
    int64_t heads, groups;
    bool rope;
  };
  for (const Case& c : {Case{"mha", 2, 2, true}, Case{"gqa", 4, 2, true}, Case{"mqa", 2, 1, false}}) {
    const at::Tensor x = leaf({5, 2, (c.heads + 2 * c.groups) * 4}, 0.8, 2.0);
    const RopeTable rope = c.rope ? make_rope_table(5, 4, 100.0, at::TensorOptions().dtype(at::kDouble)) : RopeTable{};
    const at::Tensor y = causal_attention(x, {c.heads, c.groups, 4}, rope);
    torch::autograd::backward({y}, {wave(y.sizes(), 0.9)});
    expect_golden(std::string("attention.") + c.name + ".y", y);
    expect_golden(std::string("attention.") + c.name + ".dx", x.grad());
  }
}

}  // namespace
}  // namespace ranklab
