// What sentinels measure is the same in every layout as on one rank: each element counts once, whatever ranks have
// shards, copies or pieces of it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <ostream>

#include "tests/sentinels/sentinel_run.h"
#include "tests/support/model_variants.h"

namespace ranklab {
namespace {

struct LayoutCase {
  std::string name;
  std::function<void(TrainConfig&)> change;
};

void PrintTo(const LayoutCase& one, std::ostream* out) { *out << one.name; }

// Of time and memory layouts tell other things.
bool depends_on_layout(const std::string& tag) {
  for (const char* prefix : {"Time/", "Throughput/", "Perf/", "Memory/", "Health/step_time", "Health/straggler",
                             "Health/memory", "Checkpoint/"})
    if (tag.starts_with(prefix)) return true;
  return false;
}

std::map<std::string, double> values_of(const SentinelReport& report) {
  std::map<std::string, double> values;
  for (const SentinelValue& value : report.values)
    if (!depends_on_layout(value.tag)) values[value.tag] = value.value;
  return values;
}

void expect_like_one_rank(TrainConfig config) {
  config.train_iters = 3;
  config.eval_interval = 2;
  config.eval_iters = 1;
  config.sentinels.mode = SentinelMode::kDebug;
  config.sentinels.drift_interval = 1;
  const SentinelRun want = run_sentinels(on_one_rank(config)), got = run_sentinels(config);
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (size_t step = 0; step < want.steps.size(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const auto here = values_of(*got.steps[step]), there = values_of(*want.steps[step]);
    EXPECT_GT(there.size(), 100u);
    EXPECT_EQ(here.size(), there.size());
    for (const auto& [tag, value] : there) {
      ASSERT_TRUE(here.contains(tag)) << tag;
      // A mean over many elements of both signs is rounding beside its standard deviation.
      const bool cancels = tag.ends_with("/mean") || tag.ends_with("kl_to_prev");
      EXPECT_NEAR(here.at(tag), value, (cancels ? 1e-12 : 1e-12 * std::max(std::abs(value), 1e-3))) << tag;
    }
  }
}

class SentinelLayouts : public testing::TestWithParam<LayoutCase> {};

TEST_P(SentinelLayouts, MeasureWhatOneRankMeasures) {
  TrainConfig config = small_config();
  config.clip_grad = 0.5;
  GetParam().change(config);
  expect_like_one_rank(config);
}

void with_experts(TrainConfig& c) { variant_named("deepseek_experts").change(c.model); }

INSTANTIATE_TEST_SUITE_P(
    Of, SentinelLayouts,
    testing::Values(LayoutCase{"tp2_pp2_dp2", [](TrainConfig& c) { c.parallel = {.world = 8, .tp = 2, .pp = 2}; }},
                    LayoutCase{"tp2_without_sequence_parallelism",
                               [](TrainConfig& c) {
                                 c.parallel = {.world = 2, .tp = 2};
                                 c.sequence_parallel = false;
                               }},
                    LayoutCase{"zero1_tp2_dp2",
                               [](TrainConfig& c) {
                                 c.parallel = {.world = 4, .tp = 2};
                                 c.zero_stage = 1;
                               }},
                    LayoutCase{"zero3_dp4",
                               [](TrainConfig& c) {
                                 c.parallel = {.world = 4};
                                 c.zero_stage = 3;
                               }},
                    LayoutCase{"zero3_in_two_groups",
                               [](TrainConfig& c) {
                                 c.parallel = {.world = 4, .replicas = 2};
                                 c.zero_stage = 3;
                               }},
                    LayoutCase{"cp2_dp2", [](TrainConfig& c) { c.parallel = {.world = 4, .cp = 2}; }},
                    LayoutCase{"dualpipe",
                               [](TrainConfig& c) {
                                 c.parallel = {.world = 2, .pp = 2};
                                 c.pipeline_schedule = "dualpipe";
                               }},
                    LayoutCase{"recomputed",
                               [](TrainConfig& c) {
                                 c.parallel = {.world = 2, .tp = 2};
                                 c.recompute_granularity = "full";
                               }},
                    LayoutCase{"latent_tp2",
                               [](TrainConfig& c) {
                                 variant_named("latent").change(c.model);
                                 c.parallel = {.world = 2, .tp = 2};
                               }},
                    LayoutCase{"tied_pp2",
                               [](TrainConfig& c) {
                                 c.model.tie_embeddings = true;
                                 c.parallel = {.world = 2, .pp = 2};
                               }},
                    LayoutCase{"ep4",
                               [](TrainConfig& c) {
                                 with_experts(c);
                                 c.parallel = {.world = 4, .ep = 4};
                               }},
                    LayoutCase{"etp2_tp2_zero2",
                               [](TrainConfig& c) {
                                 with_experts(c);
                                 c.parallel = {.world = 4, .tp = 2, .ep = 1, .etp = 2};
                                 c.zero_stage = 2;
                               }}),
    [](const auto& one) { return one.param.name; });

// With 16-bit weights, masters and a loss scale whose first steps overflow: what is measured is finite, gradients are
// unscaled, and a skipped step has no update.
TEST(SentinelTypes, MeasureIn16BitsToo) {
  for (const bool fp16 : {false, true}) {
    TrainConfig config = watched_config();
    config.params_dtype = "fp32";
    config.bf16 = !fp16;
    config.precision.fp16 = fp16;
    config.zero_stage = 2;
    config.sentinels.mode = SentinelMode::kDebug;
    const SentinelRun run = run_sentinels(config);
    ASSERT_EQ(run.steps.size(), 6u);
    int updates = 0;
    for (size_t step = 0; step < 6; ++step) {
      for (const SentinelValue& value : run.steps[step]->values) EXPECT_TRUE(std::isfinite(value.value)) << value.tag;
      const double* weights = run.steps[step]->find("Parameters/norm");
      EXPECT_EQ(weights == nullptr, run.metrics[step].skipped);
      if (weights == nullptr) continue;
      ++updates;
      double squares = 0;
      for (const SentinelValue& value : run.steps[step]->values)
        if (std::string(value.name) == "parameter_grad_norm") squares += value.value * value.value;
      EXPECT_NEAR(std::sqrt(squares), run.metrics[step].grad_norm, 1e-3 * run.metrics[step].grad_norm);
    }
    EXPECT_GT(updates, 0);
  }
}

}  // namespace
}  // namespace ranklab
