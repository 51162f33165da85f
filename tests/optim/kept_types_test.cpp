// What AdamW keeps in 16 bits: the update is that in fp32 on the widened numbers, and what is kept its rounding.
#include <gtest/gtest.h>

#include <tuple>

#include "core/optim/optimizer.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"

namespace ranklab {
namespace {

using golden::wave;

void fill(ParameterRegistry& registry) {
  registry.create("weight", replicated({7, 5}), {InitKind::kNormal, 1.0}, true);
  registry.create("norm", replicated({4}), {InitKind::kOnes}, false);
}

// Numbers kept in fp32 that have the values of another type.
void round_to(const at::Tensor& tensor, at::ScalarType type) { tensor.copy_(tensor.to(type).to(at::kFloat)); }

const OptimizerState& state_of(const std::vector<OptimizerState>& states, const std::string& name) {
  for (const OptimizerState& state : states) {
    if (state.parameter->name == name) return state;
  }
  throw std::out_of_range(name);
}

// exp_avg, exp_avg_sq
using Moments = std::tuple<at::ScalarType, at::ScalarType>;

class KeptMoments : public testing::TestWithParam<Moments> {};

// The reference keeps its moments in fp32 and has them rounded after each step.
TEST_P(KeptMoments, AreRoundedAfterEachStep) {
  const auto [first, second] = GetParam();
  ParameterRegistry kept(1, at::kFloat, at::kCPU), plain(1, at::kFloat, at::kCPU);
  fill(kept), fill(plain);
  const auto narrow = make_adamw(kept.parameters(), {.exp_avg_type = first, .exp_avg_sq_type = second});
  const auto reference = make_adamw(plain.parameters(), {});
  const at::NoGradGuard no_grad;
  for (int t = 1; t <= 12; ++t) {
    for (ParameterRegistry* registry : {&kept, &plain}) {
      for (Parameter* p : registry->parameters())
        p->data.mutable_grad() = wave(p->data.sizes(), 0.3 + t).to(at::kFloat);
    }
    narrow->step(1e-3);
    reference->step(1e-3);
    for (const OptimizerState& state : reference->states()) {
      round_to(state.moments[0].second, first);
      round_to(state.moments[1].second, second);
    }
  }
  const auto states = narrow->states();
  for (const OptimizerState& want : reference->states()) {
    const OptimizerState& got = state_of(states, want.parameter->name);
    EXPECT_EQ(got.moments[0].second.scalar_type(), first);
    EXPECT_EQ(got.moments[1].second.scalar_type(), second);
    EXPECT_TRUE(at::equal(got.moments[0].second.to(at::kFloat), want.moments[0].second)) << want.parameter->name;
    EXPECT_TRUE(at::equal(got.moments[1].second.to(at::kFloat), want.moments[1].second)) << want.parameter->name;
    EXPECT_TRUE(at::equal(got.weight, want.weight)) << want.parameter->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KeptMoments,
                         testing::Values(Moments{at::kBFloat16, at::kBFloat16}, Moments{at::kHalf, at::kFloat},
                                         Moments{at::kFloat, at::kBFloat16}, Moments{at::kHalf, at::kHalf}));

// Parameters in 16 bits without masters: updated in fp32 and rounded, so that a small update is lost.
TEST(WithoutMasters, ParametersAreUpdatedInFp32AndRounded) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const bool adamw : {true, false}) {
      ParameterRegistry narrow(1, type, at::kCPU), wide(1, at::kFloat, at::kCPU);
      fill(narrow), fill(wide);
      const at::NoGradGuard no_grad;
      for (Parameter* p : wide.parameters()) p->data.copy_(narrow.find(p->name)->data);
      const auto make = [&](ParameterRegistry& registry) {
        return adamw ? make_adamw(registry.parameters(), {.masters = false})
                     : make_sgd(registry.parameters(), {.momentum = 0.9, .weight_decay = 0.1, .masters = false});
      };
      const auto kept = make(narrow), reference = make(wide);
      for (int t = 1; t <= 12; ++t) {
        for (Parameter* p : narrow.parameters()) {
          p->data.mutable_grad() = wave(p->data.sizes(), 0.3 + t).to(type);
          wide.find(p->name)->data.mutable_grad() = p->data.grad().to(at::kFloat);
        }
        kept->step(1e-2);
        reference->step(1e-2);
        for (Parameter* p : wide.parameters()) round_to(p->data, type);
      }
      for (const OptimizerState& state : kept->states()) {
        EXPECT_EQ(state.weight.scalar_type(), type);
        EXPECT_EQ(state.moments[0].second.scalar_type(), at::kFloat);
        EXPECT_TRUE(at::equal(state.weight.to(at::kFloat), wide.find(state.parameter->name)->data)) << adamw;
      }
      const at::Tensor before = narrow.find("norm")->data.clone();
      for (Parameter* p : narrow.parameters()) p->data.mutable_grad() = at::ones_like(p->data);
      kept->step(1e-6);
      EXPECT_TRUE(at::equal(narrow.find("norm")->data, before)) << "an update below a rounding step";
    }
  }
}

// fp32 gradients of parameters in 16 bits are read as they are.
TEST(WideGradients, ReachTheMastersUnrounded) {
  ParameterRegistry narrow(1, at::kBFloat16, at::kCPU), wide(1, at::kFloat, at::kCPU);
  fill(narrow), fill(wide);
  const at::NoGradGuard no_grad;
  for (Parameter* p : wide.parameters()) p->data.copy_(narrow.find(p->name)->data);
  const auto mixed = make_adamw(narrow.parameters(), {}), reference = make_adamw(wide.parameters(), {});
  for (ParameterRegistry* registry : {&narrow, &wide}) {
    for (Parameter* p : registry->parameters()) p->data.mutable_grad() = wave(p->data.sizes(), 0.3).to(at::kFloat);
  }
  mixed->step(1e-3);
  reference->step(1e-3);
  for (const OptimizerState& state : mixed->states())
    EXPECT_TRUE(at::equal(state.weight, wide.find(state.parameter->name)->data));
}

// Gradients under a loss scale: too small for fp16 when they are divided there, whole when the update divides them.
TEST(StepScaled, MultipliesInFp32) {
  constexpr double kScale = 65536;
  ParameterRegistry narrow(1, at::kHalf, at::kCPU), wide(1, at::kFloat, at::kCPU);
  fill(narrow), fill(wide);
  const at::NoGradGuard no_grad;
  for (Parameter* p : wide.parameters()) p->data.copy_(narrow.find(p->name)->data);
  const auto mixed = make_adamw(narrow.parameters(), {}), reference = make_adamw(wide.parameters(), {});
  for (Parameter* p : narrow.parameters()) {
    p->data.mutable_grad() = wave(p->data.sizes(), 0.3, 1e-4).to(at::kHalf);
    wide.find(p->name)->data.mutable_grad() = p->data.grad().to(at::kFloat).mul_(1 / kScale);
  }
  EXPECT_TRUE(mixed->step_scaled(1e-3, 1 / kScale));
  reference->step(1e-3);
  for (const OptimizerState& state : mixed->states()) {
    EXPECT_TRUE(at::equal(state.weight, wide.find(state.parameter->name)->data));
    EXPECT_GT(state.moments[0].second.abs().max().item<float>(), 0);
    EXPECT_EQ(state.parameter->data.grad().to(at::kFloat).mul(1 / kScale).to(at::kHalf).abs().max().item<float>(), 0)
        << "divided in fp16 nothing is left";
  }
}

}  // namespace
}  // namespace ranklab
