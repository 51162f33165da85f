// The one-pass kernels against the same layers in plain ATen ops, forward and backward.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "core/nn/activation.h"
#include "core/nn/attention/attention.h"
#include "core/nn/head_norm.h"
#include "core/nn/kernels/row_kernels.h"
#include "core/nn/norm.h"
#include "core/nn/recomputable_output.h"
#include "core/nn/rope.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;
using golden::wave;
using Inputs = std::vector<at::Tensor>;
using Layer = std::function<Inputs(const Inputs&)>;

// Outputs and input gradients of sum(output_k * wave_k).
Inputs run(const Layer& layer, const Inputs& values, at::ScalarType dtype) {
  Inputs leaves;
  for (const at::Tensor& value : values) leaves.push_back(value.to(dtype).detach().clone().requires_grad_(true));
  Inputs results = layer(leaves);
  at::Tensor total = at::zeros({}, at::TensorOptions().dtype(dtype));
  for (size_t k = 0; k < results.size(); ++k) {
    total = total + (results[k] * wave(results[k].sizes(), 0.3 + static_cast<double>(k)).to(dtype)).sum();
  }
  torch::autograd::backward({total}, {});
  for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

void expect_same(const Layer& fast, const Layer& reference, const Inputs& values) {
  const Inputs want = run(reference, values, at::kDouble);
  const Inputs got64 = run(fast, values, at::kDouble);
  const Inputs got32 = run(fast, values, at::kFloat);
  ASSERT_EQ(want.size(), got64.size());
  Inputs rounded;
  for (const at::Tensor& value : values) rounded.push_back(value.to(at::kBFloat16).to(at::kDouble));
  const Inputs want16 = run(reference, rounded, at::kDouble);
  const Inputs got16 = run(fast, rounded, at::kBFloat16);
  for (size_t k = 0; k < want.size(); ++k) EXPECT_LT(relative_error(got16[k].to(at::kDouble), want16[k]), 0.01) << k;
  for (size_t k = 0; k < want.size(); ++k) {
    EXPECT_LT(relative_error(got64[k], want[k]), 1e-13) << "result " << k;
    EXPECT_LT(relative_error(got32[k], want[k]), 1e-6) << "result " << k;
  }
}

TEST(RmsNorm, EqualsReference) {
  for (const int64_t width : {3, 7, 8, 64, 131}) {
    expect_same([](const Inputs& in) { return Inputs{add_rms_norm(in[0], {}, in[1], {1e-5}).normed}; },
                [](const Inputs& in) { return Inputs{add_rms_norm_reference(in[0], {}, in[1], {1e-5}).normed}; },
                {wave({5, 9, width}, 0.1), wave({width}, 0.2, 0.5, 1.0)});
  }
}

TEST(AddRmsNorm, EqualsReferenceInBothOutputs) {
  for (const double offset : {0.0, 1.0}) {
    const auto layer = [offset](auto norm) {
      return [=](const Inputs& in) {
        const NormOutput out = norm(in[0], in[1], in[2], {1e-5, offset});
        return Inputs{out.sum, out.normed};
      };
    };
    const Inputs values{wave({33, 3, 40}, 0.1), wave({33, 3, 40}, 0.7, 2.0), wave({40}, 0.2, 0.5, 1.0)};
    expect_same(layer(add_rms_norm), layer(add_rms_norm_reference), values);
  }
}

TEST(AddRmsNorm, WithAnOffsetItIsRecomputedAlike) {
  const NormOutput out = add_rms_norm(wave({4, 2, 8}, 0.1), {}, wave({8}, 0.2), {1e-5, 1.0});
  EXPECT_TRUE(at::equal(out.recipe.normed(), out.normed));
}

TEST(Geglu, IsTheGateInGeluTimesUp) {
  expect_same([](const Inputs& in) { return Inputs{geglu(in[0])}; },
              [](const Inputs& in) {
                const auto halves = in[0].chunk(2, -1);
                return Inputs{gelu_tanh(halves[0]) * halves[1]};
              },
              {wave({5, 3, 14}, 0.3, 3.0)});
}

TEST(SwigluOai, BoundsItsHalves) {
  // Values on both sides of both bounds, 7.
  expect_same([](const Inputs& in) { return Inputs{swiglu_oai(in[0])}; },
              [](const Inputs& in) {
                const auto halves = in[0].chunk(2, -1);
                const at::Tensor gate = halves[0].clamp_max(7), up = halves[1].clamp(-7, 7);
                return Inputs{(up + 1) * gate * at::sigmoid(gate * 1.702)};
              },
              {wave({5, 12}, 0.3, 12.0)});
}

TEST(SquaredRelu, IsTheSquareOfWhatIsAboveZero) {
  expect_same([](const Inputs& in) { return Inputs{squared_relu(in[0])}; },
              [](const Inputs& in) { return Inputs{in[0].clamp_min(0).square()}; }, {wave({5, 3, 14}, 0.3, 3.0)});
}

TEST(AddRmsNorm, AnUnusedOutputHasNoGradient) {
  const Inputs values{wave({4, 2, 8}, 0.1), wave({4, 2, 8}, 0.7), wave({8}, 0.2, 0.5, 1.0)};
  for (const bool use_sum : {false, true}) {
    const auto pick = [use_sum](const NormOutput& out) { return Inputs{use_sum ? out.sum * 1.0 : out.normed}; };
    Inputs leaves;
    for (const at::Tensor& value : values) leaves.push_back(value.clone().requires_grad_(true));
    const at::Tensor y = pick(add_rms_norm(leaves[0], leaves[1], leaves[2], {1e-5}))[0];
    torch::autograd::backward({y.sum()}, {});
    EXPECT_TRUE(leaves[0].grad().defined());
    EXPECT_EQ(leaves[2].grad().defined(), !use_sum);
    EXPECT_EQ(at::equal(leaves[1].grad(), at::ones_like(leaves[1])), use_sum);
  }
}

TEST(Swiglu, EqualsReferenceOverTheWholeRange) {
  for (const double scale : {1.0, 20.0, 120.0}) {  // past +-88 sigmoid saturates: neither NaN nor Inf
    expect_same([](const Inputs& in) { return Inputs{swiglu(in[0])}; },
                [](const Inputs& in) { return Inputs{swiglu_reference(in[0])}; }, {wave({6, 5, 94}, 0.1, scale)});
  }
}

TEST(Swiglu, GradientAndRecomputedOutputInOnePassHaveTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const at::Tensor gate_up = wave({37, 2, 94}, 0.1, 4.0).to(type), grad_out = wave({37, 2, 47}, 0.7).to(type);
    const at::Tensor place = grad_out.clone();
    EXPECT_TRUE(at::equal(swiglu_grad_and_recompute(place, gate_up), swiglu_grad(grad_out, gate_up))) << type;
    EXPECT_TRUE(at::equal(place, swiglu(gate_up))) << type;
  }
}

TEST(Attention, EqualsReference) {
  struct Case {
    int64_t heads, groups, head_dim, seq;
    bool rope;
  };
  for (const Case& c : {Case{2, 2, 8, 5, true}, Case{4, 2, 8, 17, true}, Case{4, 1, 16, 33, true},
                        Case{3, 3, 6, 4, false}, Case{2, 1, 4, 1, true}}) {
    const AttentionShape shape{c.heads, c.groups, c.head_dim};
    const auto layer = [&](auto attention) {
      return [&, attention](const Inputs& in) {
        const auto type = in[0].scalar_type() == at::kBFloat16 ? at::kFloat : in[0].scalar_type();
        const RopeTable rope = c.rope ? make_rope_table(64, c.head_dim, 100.0, at::TensorOptions(type)) : RopeTable{};
        return Inputs{attention(in[0], shape, rope, at::Tensor())};
      };
    };
    expect_same(layer(causal_attention), layer(causal_attention_reference),
                {wave({c.seq, 3, (c.heads + 2 * c.groups) * c.head_dim}, 0.1, 2.0)});
  }
}

TEST(HeadNorm, EqualsReference) {
  for (const AttentionShape& shape :
       {AttentionShape{4, 2, 8}, AttentionShape{3, 3, 6}, AttentionShape{8, 1, 20}, AttentionShape{1, 1, 131}}) {
    const auto layer = [&](auto norm) {
      const double offset = shape.heads == 3 ? 1.0 : 0.0;
      return [&, norm, offset](const Inputs& in) { return Inputs{norm(in[0], shape, {in[1], in[2], 1e-5, offset})}; };
    };
    const int64_t d = shape.head_dim;
    expect_same(layer(head_norm), layer(head_norm_reference),
                {wave({23, 3, (shape.heads + 2 * shape.groups) * d}, 0.1, 2.0), wave({d}, 0.2, 0.5, 1.0),
                 wave({d}, 0.9, 0.5, -1.0)});
  }
}

// Query heads of length 2, keys of length 3, values as they are: the weights stand where they belong.
TEST(HeadNorm, NormsQueriesAndKeysAlone) {
  const AttentionShape shape{2, 1, 4};
  const auto ones = [](double value) { return at::full({4}, value, at::TensorOptions(at::kDouble)); };
  const at::Tensor qkv = wave({3, 2, 16}, 0.1, 5.0);
  const at::Tensor out = head_norm(qkv, shape, {ones(1.0), ones(1.5), 1e-12}).view({3, 2, 4, 4});
  const at::Tensor lengths = out.square().sum(-1).sqrt();
  EXPECT_LT(relative_error(lengths.narrow(-1, 0, 2), at::full({3, 2, 2}, 2.0)), 1e-10);
  EXPECT_LT(relative_error(lengths.narrow(-1, 2, 1), at::full({3, 2, 1}, 3.0)), 1e-10);
  EXPECT_TRUE(at::equal(out.select(2, 3), qkv.view({3, 2, 4, 4}).select(2, 3)));
}

TEST(Attention, IsCausal) {
  const AttentionShape shape{2, 1, 4};
  const at::Tensor qkv = wave({6, 2, 16}, 0.4);
  at::Tensor changed = qkv.clone();
  changed.narrow(0, 4, 2).mul_(-3.0);
  const at::Tensor before = causal_attention(qkv, shape, {}), after = causal_attention(changed, shape, {});
  EXPECT_TRUE(at::equal(before.narrow(0, 0, 4), after.narrow(0, 0, 4)));
  EXPECT_FALSE(at::equal(before.narrow(0, 4, 2), after.narrow(0, 4, 2)));
}

// A linear layer saves what recomputes its input, or the input itself.
TEST(CheapOutputs, AreRecomputedUnlessTheyAreToBeKept) {
  const at::Tensor x = wave({4, 2, 8}, 0.1), weight = wave({8}, 0.2, 0.5, 1.0);
  for (const bool keep : {false, true}) {
    keep_cheap_outputs(keep);
    const NormOutput normed = add_rms_norm(x, {}, weight, {1e-5});
    const Activated activated = activate(swiglu, x);
    keep_cheap_outputs(false);
    EXPECT_EQ(normed.recipe.defined(), !keep);
    EXPECT_EQ(activated.compute == nullptr, keep);
    EXPECT_EQ(activated.input.defined(), !keep);
    EXPECT_TRUE(at::equal(activated.out, swiglu(x)));
  }
}

TEST(SumOfSquares, IsFp64) {
  const at::Tensor x = at::full({100003}, 1e-4f, at::TensorOptions().dtype(at::kFloat));
  const double each = static_cast<double>(1e-4f) * static_cast<double>(1e-4f);
  EXPECT_NEAR(kernels::sum_of_squares(x.const_data_ptr<float>(), x.numel()), 100003 * each, 1e-12 * 100003 * each);
}

}  // namespace
}  // namespace ranklab
