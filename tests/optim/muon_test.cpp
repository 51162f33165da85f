// Muon against the paper's formulas, written out, and against torch.optim.Muon (tests/golden/make_muon.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/optim/newton_schulz.h"
#include "core/optim/optimizer.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;
using golden::wave;

// Element by element: none of ATen's matrix products.
at::Tensor times(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor product = at::zeros({a.size(0), b.size(1)}, a.options());
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < b.size(1); ++j) product[i][j] = (a[i] * b.t()[j]).sum();
  return product;
}

at::Tensor orthogonalized(const at::Tensor& g, int steps) {
  at::Tensor x = g / g.square().sum().sqrt();
  for (int step = 0; step < steps; ++step) {
    const at::Tensor gram = times(x, x.t());
    x = 3.4445 * x + times(-4.7750 * gram + 2.0315 * times(gram, gram), x);
  }
  return x;
}

TEST(NewtonSchulz, IsThePolynomialOfTheMatrix) {
  for (const auto& [rows, cols] : {std::pair{5, 5}, {3, 7}, {7, 3}, {1, 4}}) {
    const at::Tensor g = wave({rows, cols}, 0.4);
    EXPECT_LT(relative_error(newton_schulz(g, 5), orthogonalized(g, 5)), 1e-13) << rows << " x " << cols;
    EXPECT_LT(relative_error(newton_schulz(g.t(), 5), newton_schulz(g, 5).t()), 1e-13);
  }
}

TEST(NewtonSchulz, SingularValuesComeNearOneAndZerosStay) {
  const at::Tensor g = wave({6, 9}, 0.4).add(at::eye(6, 9, at::kDouble).mul(2));
  const at::Tensor x = newton_schulz(g, 5);
  // U V^T: the rows are orthonormal but for the iteration's own error.
  const at::Tensor gram = times(x, x.t());
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(gram[i][i].item<double>(), 1.0, 0.5) << i;
  EXPECT_TRUE(at::equal(newton_schulz(at::zeros({3, 4}), 5), at::zeros({3, 4})));
}

TEST(NewtonSchulz, InAnotherTypeKeepsTheMatrixs) {
  const at::Tensor g = wave({6, 9}, 0.4).add(at::eye(6, 9, at::kDouble).mul(2)).to(at::kFloat);
  const at::Tensor x = newton_schulz(g, 5, at::kBFloat16);
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  const double error = relative_error(x, newton_schulz(g, 5));
  EXPECT_GT(error, 1e-4) << "it was not computed in bf16";
  EXPECT_LT(error, 5e-2);
}

// A fused weight of three matrices, one matrix, and a norm.
struct MuonFixture {
  explicit MuonFixture(at::ScalarType type = at::kDouble) : registry(1, type, at::kCPU) {
    fused.hidden_matrix = matrix.hidden_matrix = true;
  }
  ParameterRegistry registry;
  Parameter& fused = registry.create("qkv", shard_segments({12, 5}, {6, 4, 2}, 0, 1), {InitKind::kNormal, 1.0}, true);
  Parameter& matrix = registry.create("out", replicated({5, 6}), {InitKind::kNormal, 1.0}, true);
  Parameter& head = registry.create("head", replicated({7, 5}), {InitKind::kNormal, 1.0}, true);
  Parameter& norm = registry.create("norm", replicated({4}), {InitKind::kOnes}, false);
  void set_grads(int step) {
    double salt = step;
    for (Parameter* parameter : registry.parameters())
      parameter->data.mutable_grad() = wave(parameter->data.sizes(), salt += 0.3).to(registry.dtype());
  }
};

constexpr double kLr = 0.02;

// One matrix, whose gradients are those rows of the parameter's.
at::Tensor muon_reference(const Parameter& parameter, double salt, int64_t row, int64_t rows, const MuonOptions& o,
                          int steps) {
  at::Tensor w = parameter.data.detach().narrow(0, row, rows).clone(), m = at::zeros_like(w);
  const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(w.size(0), w.size(1))));
  for (int t = 1; t <= steps; ++t) {
    const at::Tensor g = wave(parameter.data.sizes(), salt + t).narrow(0, row, rows);
    m = o.momentum * m + (1 - o.momentum) * g;
    const at::Tensor direction = o.nesterov ? (1 - o.momentum) * g + o.momentum * m : m;
    const at::Tensor x =
        direction.size(0) > direction.size(1) ? orthogonalized(direction.t(), 5).t() : orthogonalized(direction, 5);
    w = w * (1 - kLr * o.others.weight_decay) - kLr * scale * x;
  }
  return w;
}

TEST(Muon, IsTheFormulaWithFusedMatricesApart) {
  for (const bool nesterov : {true, false}) {
    MuonFixture f, adamw;
    const MuonOptions options{.nesterov = nesterov};
    const at::Tensor fused =
        at::cat({muon_reference(f.fused, 0.3, 0, 6, options, 4), muon_reference(f.fused, 0.3, 6, 4, options, 4),
                 muon_reference(f.fused, 0.3, 10, 2, options, 4)});
    const at::Tensor matrix = muon_reference(f.matrix, 0.6, 0, 5, options, 4);
    const auto muon = make_muon(f.registry.parameters(), options);
    const auto others = make_adamw({&adamw.head, &adamw.norm}, options.others);
    for (int t = 1; t <= 4; ++t) {
      f.set_grads(t);
      adamw.set_grads(t);
      muon->step(kLr);
      others->step(kLr);
    }
    EXPECT_LT(relative_error(f.fused.data, fused), 1e-12) << nesterov;
    EXPECT_LT(relative_error(f.matrix.data, matrix), 1e-12) << nesterov;
    EXPECT_TRUE(at::equal(f.head.data, adamw.head.data));
    EXPECT_TRUE(at::equal(f.norm.data, adamw.norm.data));
    EXPECT_EQ(muon->updates(), 4);
    std::map<std::string, size_t> moments;
    for (const OptimizerState& state : muon->states()) moments[state.parameter->name] = state.moments.size();
    EXPECT_EQ(moments, (std::map<std::string, size_t>{{"qkv", 1}, {"out", 1}, {"head", 2}, {"norm", 2}}));
  }
}

// The file holds the weight of torch.optim.Muon after each of three steps.
TEST(Muon, IsTorchs) {
  const golden::Golden want = golden::load("muon.txt");
  for (const auto& [rows, cols] : {std::pair{4, 6}, {6, 4}}) {
    const std::string name = std::to_string(rows) + "x" + std::to_string(cols);
    ParameterRegistry registry(1, at::kDouble, at::kCPU);
    Parameter& weight = registry.create("w", replicated({rows, cols}), {InitKind::kZeros}, true);
    weight.hidden_matrix = true;
    {
      const at::NoGradGuard no_grad;
      weight.data.copy_(wave({rows, cols}, 0.2));
    }
    const auto muon = make_muon({&weight}, {});
    for (int t = 1; t <= 3; ++t) {
      weight.data.mutable_grad() = wave({rows, cols}, 0.2 + t);
      muon->step(kLr);
      EXPECT_LT(relative_error(weight.data, want[name + "_step" + std::to_string(t)]), 1e-12) << name << " " << t;
    }
  }
}

// bf16 parameters: the update happens to fp32 masters, from widened gradients, in fp32.
TEST(Muon, UpdatesMastersAsItUpdatesFp32) {
  MuonFixture narrow(at::kBFloat16), wide(at::kFloat);
  for (Parameter* parameter : wide.registry.parameters()) {
    const at::NoGradGuard no_grad;
    parameter->data.copy_(narrow.registry.find(parameter->name)->data);
  }
  const auto mixed = make_muon(narrow.registry.parameters(), {}), plain = make_muon(wide.registry.parameters(), {});
  for (int t = 1; t <= 5; ++t) {
    narrow.set_grads(t);
    for (Parameter* parameter : wide.registry.parameters())
      parameter->data.mutable_grad() = narrow.registry.find(parameter->name)->data.grad().to(at::kFloat);
    mixed->step(1e-4);
    plain->step(1e-4);
  }
  for (const OptimizerState& state : mixed->states()) {
    const at::Tensor& want = wide.registry.find(state.parameter->name)->data;
    EXPECT_TRUE(at::equal(state.weight, want)) << state.parameter->name;
    EXPECT_TRUE(at::equal(state.parameter->data, want.to(at::kBFloat16))) << state.parameter->name;
  }
}

TEST(Muon, TakesGradientsTimesAFactor) {
  MuonFixture scaled, plain;
  const auto one = make_muon(scaled.registry.parameters(), {}), other = make_muon(plain.registry.parameters(), {});
  scaled.set_grads(1);
  plain.set_grads(1);
  for (Parameter* parameter : plain.registry.parameters()) parameter->data.mutable_grad().mul_(0.25);
  EXPECT_TRUE(one->step_scaled(kLr, 0.25));
  other->step(kLr);
  for (Parameter* parameter : plain.registry.parameters())
    EXPECT_TRUE(at::equal(scaled.registry.find(parameter->name)->data, parameter->data)) << parameter->name;
}

}  // namespace
}  // namespace ranklab
