// Updates against the papers' formulas, written out element by element.
#include "core/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::relative_error;
using golden::wave;

struct Fixture {
  ParameterRegistry registry{1, at::kDouble, at::kCPU};
  Parameter& weight = registry.create("weight", replicated({3, 5}), {InitKind::kNormal, 1.0}, true);
  Parameter& norm = registry.create("norm", replicated({4}), {InitKind::kOnes}, false);
  void set_grads(int step) {
    weight.data.mutable_grad() = wave({3, 5}, 0.3 + step);
    norm.data.mutable_grad() = wave({4}, 0.9 + step);
  }
};

at::Tensor adamw_reference(at::Tensor w, double salt, const AdamWOptions& o, double decay, int steps) {
  at::Tensor m = at::zeros_like(w), v = at::zeros_like(w);
  for (int t = 1; t <= steps; ++t) {
    const double lr = 0.01 * t;
    const at::Tensor g = wave(w.sizes(), salt + t);
    w = w * (1 - lr * decay);
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const at::Tensor m_hat = m / (1 - std::pow(o.beta1, t)), v_hat = v / (1 - std::pow(o.beta2, t));
    w = w - lr * m_hat / (v_hat.sqrt() + o.epsilon);
  }
  return w;
}

TEST(AdamW, IsTheFormulaAndDecaysOnlyWeights) {
  Fixture f;
  const AdamWOptions options;
  const at::Tensor weight = adamw_reference(f.weight.data.detach().clone(), 0.3, options, options.weight_decay, 5);
  const at::Tensor norm = adamw_reference(f.norm.data.detach().clone(), 0.9, options, 0.0, 5);
  const auto optimizer = make_adamw(f.registry.parameters(), options);
  for (int t = 1; t <= 5; ++t) {
    f.set_grads(t);
    optimizer->step(0.01 * t);
    optimizer->zero_grad();
    EXPECT_FALSE(f.weight.data.grad().defined());
  }
  EXPECT_LT(relative_error(f.weight.data, weight), 1e-14);
  EXPECT_LT(relative_error(f.norm.data, norm), 1e-14);
  EXPECT_EQ(optimizer->states().size(), 2u);
  EXPECT_EQ(optimizer->states()[0].moments.size(), 2u);
  EXPECT_EQ(optimizer->updates(), 5);
}

at::Tensor sgd_reference(at::Tensor w, double salt, const SgdOptions& o, double decay, int steps) {
  at::Tensor buffer = at::zeros_like(w);
  for (int t = 1; t <= steps; ++t) {
    const at::Tensor g = wave(w.sizes(), salt + t) + decay * w;
    buffer = t == 1 ? g : o.momentum * buffer + g;
    w = w - 0.01 * t * buffer;
  }
  return w;
}

TEST(Sgd, IsTheFormula) {
  for (const double momentum : {0.0, 0.9}) {
    Fixture f;
    const SgdOptions options{.momentum = momentum, .weight_decay = 0.2};
    const at::Tensor weight = sgd_reference(f.weight.data.detach().clone(), 0.3, options, 0.2, 4);
    const at::Tensor norm = sgd_reference(f.norm.data.detach().clone(), 0.9, options, 0.0, 4);
    const auto optimizer = make_sgd(f.registry.parameters(), options);
    for (int t = 1; t <= 4; ++t) {
      f.set_grads(t);
      optimizer->step(0.01 * t);
    }
    EXPECT_LT(relative_error(f.weight.data, weight), 1e-14) << momentum;
    EXPECT_LT(relative_error(f.norm.data, norm), 1e-14) << momentum;
    EXPECT_EQ(optimizer->states()[0].moments.size(), momentum == 0.0 ? 0u : 1u);
  }
}

struct LionState {
  at::Tensor weight, momentum;
};
LionState lion_reference(at::Tensor w, double salt, const LionOptions& o, double decay, int steps) {
  at::Tensor m = at::zeros_like(w);
  for (int t = 1; t <= steps; ++t) {
    const at::Tensor g = wave(w.sizes(), salt + t);
    const at::Tensor direction = (o.beta1 * m + (1 - o.beta1) * g).sign();
    w = w - 0.01 * t * (direction + decay * w);
    m = o.beta2 * m + (1 - o.beta2) * g;
  }
  return {w, m};
}

TEST(Lion, IsTheFormulaAndDecaysOnlyWeights) {
  Fixture f;
  const LionOptions options{.weight_decay = 0.2};
  const LionState weight = lion_reference(f.weight.data.detach().clone(), 0.3, options, 0.2, 5);
  const LionState norm = lion_reference(f.norm.data.detach().clone(), 0.9, options, 0.0, 5);
  const auto optimizer = make_lion(f.registry.parameters(), options);
  for (int t = 1; t <= 5; ++t) {
    f.set_grads(t);
    optimizer->step(0.01 * t);
  }
  EXPECT_LT(relative_error(f.weight.data, weight.weight), 1e-14);
  EXPECT_LT(relative_error(f.norm.data, norm.weight), 1e-14);
  EXPECT_EQ(optimizer->states()[0].moments.size(), 1u);
  EXPECT_LT(relative_error(optimizer->states()[0].moments[0].second, weight.momentum), 1e-14);
  EXPECT_EQ(optimizer->updates(), 5);
}

// bf16 parameters: the update happens to fp32 masters, from widened gradients, and the parameter is its rounding. An
// update smaller than a rounding step of the parameter is not lost.
// Each takes lr decay w more of a weight (SGD without momentum, too); Muon hands it on to AdamW.
TEST(WeightDecay, IsThatOfTheNextUpdates) {
  const auto stepped = [](const auto& make, double first, double second) {
    Fixture f;
    f.weight.hidden_matrix = true;
    const auto optimizer = make(f.registry.parameters());
    for (const auto& [step, decay] : {std::pair{1, first}, std::pair{2, second}}) {
      f.set_grads(step);
      optimizer->set_weight_decay(decay);
      optimizer->step(0.01);
    }
    return std::pair{f.weight.data.detach().clone(), f.norm.data.detach().clone()};
  };
  const auto expect_decay = [&](const auto& make) {
    const auto [changed, norm] = stepped(make, 0.2, 0.5);
    const auto [plain, same] = stepped(make, 0, 0);
    EXPECT_TRUE(at::equal(norm, same));
    const Fixture start;
    // w2 = (1 - 0.5 lr) ((1 - 0.2 lr) w0 - u1) - u2, where updates u are without decay: plain = w0 - u1 - u2.
    const auto [once, ignored] = stepped(make, 0, 0.5);
    const at::Tensor want = once - (1 - 0.5 * 0.01) * 0.2 * 0.01 * start.weight.data.detach();
    EXPECT_LT(relative_error(changed, want), 1e-14);
    EXPECT_GT(relative_error(changed, plain), 1e-4);
  };
  expect_decay([](auto p) { return make_adamw(p, {.weight_decay = 9}); });
  expect_decay([](auto p) { return make_lion(p, {.weight_decay = 9}); });
  expect_decay([](auto p) { return make_muon(p, {.others = {.weight_decay = 9}}); });
  expect_decay([](auto p) { return make_sgd(p, {.weight_decay = 9}); });
}

TEST(MasterWeights, AreUpdatedInFp32AndRounded) {
  for (const bool adamw : {true, false}) {
    ParameterRegistry narrow(1, at::kBFloat16, at::kCPU), wide(1, at::kFloat, at::kCPU);
    for (ParameterRegistry* registry : {&narrow, &wide}) {
      registry->create("weight", replicated({7, 5}), {InitKind::kNormal, 1.0}, true);
      registry->create("norm", replicated({4}), {InitKind::kOnes}, false);
    }
    for (Parameter* parameter : wide.parameters()) {
      const at::NoGradGuard no_grad;
      parameter->data.copy_(narrow.find(parameter->name)->data);
    }
    const auto make = [&](ParameterRegistry& registry) {
      return adamw ? make_adamw(registry.parameters(), {})
                   : make_sgd(registry.parameters(), {.momentum = 0.9, .weight_decay = 0.1});
    };
    const auto mixed = make(narrow), reference = make(wide);
    const at::Tensor before = narrow.find("weight")->data.detach().clone();
    for (int t = 1; t <= 20; ++t) {
      for (Parameter* parameter : narrow.parameters()) {
        const at::Tensor grad = wave(parameter->data.sizes(), 0.3 + t).to(at::kBFloat16);
        parameter->data.mutable_grad() = grad;
        wide.find(parameter->name)->data.mutable_grad() = grad.to(at::kFloat);
      }
      mixed->step(1e-5);
      reference->step(1e-5);
    }
    for (const OptimizerState& state : mixed->states()) {
      const at::Tensor& want = wide.find(state.parameter->name)->data;
      EXPECT_EQ(state.weight.scalar_type(), at::kFloat);
      EXPECT_TRUE(at::equal(state.weight, want)) << state.parameter->name;
      EXPECT_TRUE(at::equal(state.parameter->data, want.to(at::kBFloat16))) << state.parameter->name;
      for (const auto& [name, moment] : state.moments) EXPECT_EQ(moment.scalar_type(), at::kFloat) << name;
    }
    EXPECT_GT((mixed->states()[0].weight - before.to(at::kFloat)).abs().max().item<double>(), 0.0);
  }
}

// Where states lie changes no bit; here both memories are the host's.
TEST(Offload, UpdatesAsWithout) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    ParameterRegistry here(1, type, at::kCPU), there(1, type, at::kCPU);
    for (ParameterRegistry* registry : {&here, &there})
      registry->create("weight", replicated({9, 5}), {InitKind::kNormal, 1.0}, true);
    const auto plain = make_adamw(here.parameters(), {});
    const auto offloaded = make_adamw(there.parameters(), {.cpu_offload = true});
    for (int t = 1; t <= 5; ++t) {
      for (ParameterRegistry* registry : {&here, &there})
        registry->find("weight")->data.mutable_grad() = wave({9, 5}, 0.3 + t).to(type);
      plain->step(1e-3);
      offloaded->step(1e-3);
    }
    EXPECT_TRUE(at::equal(here.find("weight")->data, there.find("weight")->data)) << type;
    const OptimizerState kept = offloaded->states()[0];
    EXPECT_NE(kept.weight.data_ptr(), there.find("weight")->data.data_ptr());
    EXPECT_TRUE(at::equal(kept.moments[0].second, plain->states()[0].moments[0].second));
  }
}

TEST(Optimizer, AMissingGradientIsNamed) {
  Fixture f;
  f.set_grads(0);
  f.norm.data.mutable_grad().reset();
  const auto optimizer = make_adamw(f.registry.parameters(), {});
  try {
    optimizer->step(0.1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("norm"), std::string::npos);
  }
}

}  // namespace
}  // namespace ranklab
