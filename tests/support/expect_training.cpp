#include "tests/support/expect_training.h"

#include <gtest/gtest.h>

#include "core/sim/aten.h"
#include "tests/support/relative_error.h"

namespace ranklab {
namespace {

void expect_number_near(double got, double want, double tolerance, const std::string& what) {
  if (tolerance == 0) {
    EXPECT_EQ(got, want) << what;
  } else {
    EXPECT_NEAR(got, want, tolerance * std::max(std::abs(want), 1e-3)) << what;
  }
}

void expect_same_step(const StepMetrics& got, const StepMetrics& want, const Tolerance& tolerance) {
  const std::string at_step = " at step " + std::to_string(want.step);
  EXPECT_EQ(got.tokens, want.tokens) << at_step;
  expect_number_near(got.loss, want.loss, tolerance.loss, "loss" + at_step);
  expect_number_near(got.grad_norm, want.grad_norm, tolerance.norm, "norm" + at_step);
  // These numbers are sums over stages, microbatches and ranks, added in an order that depends on the layout.
  const double sums = tolerance.norm;
  expect_number_near(got.mtp_loss, want.mtp_loss, sums, "loss of token prediction" + at_step);
  expect_number_near(got.moe_aux_loss, want.moe_aux_loss, sums, "auxiliary loss" + at_step);
  expect_number_near(got.moe_z_loss, want.moe_z_loss, sums, "z loss" + at_step);
  EXPECT_DOUBLE_EQ(got.moe_max_over_mean, want.moe_max_over_mean) << at_step;
  EXPECT_DOUBLE_EQ(got.moe_dropped_fraction, want.moe_dropped_fraction) << at_step;
  expect_number_near(got.max_attention_logit.value_or(0), want.max_attention_logit.value_or(0), tolerance.loss,
                     "largest attention logit" + at_step);
  EXPECT_EQ(got.clipped_heads, want.clipped_heads) << at_step;
}

}  // namespace

void expect_tensors_near(const StepTensors& got, const StepTensors& want, const Tolerance& tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  ASSERT_FALSE(want.empty()) << what;
  for (const auto& [key, tensor] : want) {
    const auto& [step, name] = key;
    const auto it = got.find(key);
    ASSERT_NE(it, got.end()) << what << " of " << name << " at step " << step;
    EXPECT_LE(relative_error(it->second, tensor), step <= 0 ? tolerance.first : tolerance.later)
        << what << " of " << name << " at step " << step;
  }
}

void expect_same_training(const TrainingRecord& got, const TrainingRecord& want, const Tolerance& tolerance) {
  EXPECT_EQ(got.faults, std::vector<std::string>{});
  EXPECT_EQ(got.parameters, want.parameters);
  EXPECT_EQ(got.load, want.load);
  EXPECT_EQ(got.bias, want.bias);
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (size_t i = 0; i < want.steps.size(); ++i) expect_same_step(got.steps[i], want.steps[i], tolerance);
  if (want.logits.defined()) {
    EXPECT_LE(relative_error(got.logits, want.logits), tolerance.first) << "logits";
  }
  expect_tensors_near(got.grads, want.grads, tolerance, "gradient");
  const Tolerance of_weights{.first = std::max(tolerance.first, tolerance.weights),
                             .later = std::max(tolerance.later, tolerance.weights)};
  expect_tensors_near(got.weights, want.weights, of_weights, "weight");
  ASSERT_EQ(got.moments.size(), want.moments.size());
  for (const auto& [kind, moments] : want.moments) expect_tensors_near(got.moments.at(kind), moments, tolerance, kind);
}

void expect_losses_near(const TrainingRecord& got, const TrainingRecord& want, double tolerance) {
  EXPECT_EQ(got.faults, std::vector<std::string>{});
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (size_t i = 0; i < want.steps.size(); ++i)
    EXPECT_NEAR(got.steps[i].loss, want.steps[i].loss, tolerance * want.steps[i].loss) << "step " << i;
}

void expect_curves_near(const TrainingRecord& got, const TrainingRecord& want, double loss, double norm) {
  expect_losses_near(got, want, loss);
  for (size_t i = 0; i < want.steps.size(); ++i)
    EXPECT_NEAR(got.steps[i].grad_norm, want.steps[i].grad_norm, norm * want.steps[i].grad_norm) << "step " << i;
}

}  // namespace ranklab
