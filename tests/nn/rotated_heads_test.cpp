// The heads of a projection, split and rotated in one pass, against slices rotated in plain ops: results and gradients.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/nn/attention/attention.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

SoftmaxHeads sliced(const at::Tensor& qkv, const AttentionShape& s, const RopeTable& rope) {
  const auto parts = qkv.view({qkv.size(0), qkv.size(1), -1, s.head_dim})
                         .permute({1, 2, 0, 3})
                         .split_with_sizes({s.heads, s.groups, s.groups}, 1);
  return {apply_rope(parts[0], rope), apply_rope(parts[1], rope), parts[2]};
}

at::Tensor grad_of(const SoftmaxHeads& heads, const at::Tensor& qkv) {
  std::vector<at::Tensor> all = {heads.q, heads.k, heads.v}, seeds;
  for (const at::Tensor& x : all)
    seeds.push_back(golden::wave(x.sizes(), 0.3 + static_cast<double>(seeds.size())).to(x.scalar_type()));
  qkv.mutable_grad() = at::Tensor();
  torch::autograd::backward(all, seeds);
  return qkv.grad();
}

void expect_near(const at::Tensor& got, const at::Tensor& want, const char* what) {
  const double most = got.scalar_type() == at::kDouble ? 1e-14 : got.scalar_type() == at::kFloat ? 1e-6 : 2e-2;
  EXPECT_LT((got - want).abs().max().item<double>(), most) << what << " " << got.scalar_type();
}

// The positions of a rank of a context-parallel group, of sequences whose documents begin at different positions, and
// those of a whole sequence.
TEST(RotatedHeads, InOnePassAreThoseOfPlainOps) {
  const AttentionShape shape{.heads = 4, .groups = 2, .head_dim = 6};
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf}) {
    const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
    const RopeTable table = make_rope_table(16, shape.head_dim, 50.0, at::TensorOptions(wide));
    const at::Tensor of_rank = at::tensor({4, 5, 10, 11}, at::kLong);
    const at::Tensor of_documents = at::tensor({0, 1, 2, 3, 2, 3, 0, 1, 7, 0, 1, 2}, at::kLong).view({3, 4});
    for (const RopeTable& rope : {table, rope_at(table, of_rank), rope_at(table, of_documents)}) {
      const at::Tensor qkv = golden::wave({4, 3, 48}, 0.2).to(type).requires_grad_(true);
      const SoftmaxHeads got = rotated_heads(qkv, shape, rope), want = sliced(qkv, shape, rope);
      expect_near(got.q, want.q, "q");
      expect_near(got.k, want.k, "k");
      expect_near(got.v, want.v, "v");
      const at::Tensor grad = grad_of(got, qkv);
      expect_near(grad, grad_of(want, qkv), "gradient");
    }
  }
}

}  // namespace
}  // namespace ranklab
