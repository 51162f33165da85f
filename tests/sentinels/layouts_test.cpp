// What sentinels measure is the same in every layout as on one rank: each element counts once, whatever ranks have
// shards, copies or pieces of it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <ostream>

#include "core/base/numbers/value_histogram.h"
#include "tests/sentinels/sentinel_run.h"
#include "tests/support/model_variants.h"

namespace ranklab {
namespace {

struct LayoutCase {
  std::string name;
  std::function<void(TrainConfig&)> change;
};

void PrintTo(const LayoutCase& one, std::ostream* out) { *out << one.name; }

// Time and memory are not the same in every layout.
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

void expect_histograms_like(const SentinelReport& got, const SentinelReport& want) {
  ASSERT_NE(got.histograms, nullptr);
  ASSERT_EQ(got.histograms->size(), want.histograms->size());
  EXPECT_GT(want.histograms->size(), 20u);
  for (size_t i = 0; i < want.histograms->size(); ++i) {
    const ValueHistogram &here = (*got.histograms)[i], &there = (*want.histograms)[i];
    EXPECT_EQ(here.tag, there.tag);
    EXPECT_EQ(here.counts, there.counts) << there.tag;
    EXPECT_EQ(here.elements, there.elements) << there.tag;
    EXPECT_NEAR(here.least, there.least, 1e-12 * std::abs(there.least)) << there.tag;
    EXPECT_NEAR(here.most, there.most, 1e-12 * std::abs(there.most)) << there.tag;
    EXPECT_NEAR(here.squares, there.squares, 1e-12 * there.squares) << there.tag;
    EXPECT_NEAR(here.sum, there.sum, 1e-12 * std::sqrt(there.squares * there.elements)) << there.tag;
  }
}

void expect_like_one_rank(TrainConfig config) {
  config.train_iters = 3;
  config.eval_interval = 2;
  config.eval_iters = 1;
  config.sentinels.mode = SentinelMode::kDebug;
  config.sentinels.drift_interval = config.sentinels.histogram_interval = 1;
  config.tensorboard_dir = "somebody reads histograms";
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
    expect_histograms_like(*got.steps[step], *want.steps[step]);
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
                    LayoutCase{"tied_padded_tp2_zero1",  // rows of padding are no elements
                               [](TrainConfig& c) {
                                 c.model.vocab_size = 259;
                                 c.model.tie_embeddings = true;
                                 c.parallel = {.world = 4, .tp = 2};
                                 c.zero_stage = 1;
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

// Each known number is in the bin whose limits hold it, the first bin's least among them.
TEST(SentinelHistograms, BinsHoldWhatTheirLimitsSay) {
  using H = ValueHistogram;
  EXPECT_EQ(H::limit(H::kMagnitudes), std::ldexp(1.0, -32));
  EXPECT_EQ(H::limit(H::kMagnitudes + 32 * 4 + 1), 1.25);
  EXPECT_EQ(H::limit(H::kMagnitudes - 32 * 4 - 1), -1.0);
  EXPECT_EQ(H::limit(H::kBins - 1), 65536.0);
  for (int64_t bin = 1; bin < H::kBins; ++bin) EXPECT_LT(H::limit(bin - 1), H::limit(bin));

  TrainConfig config = watched_config();
  config.train_iters = 1;
  config.sentinels.histogram_interval = 1;
  config.tensorboard_dir = "somebody reads histograms";
  const SentinelRun run = run_sentinels(config);
  std::set<std::string> tags;
  for (const H& one : *run.steps.at(0)->histograms) {
    tags.insert(one.tag);
    if (one.tag != "weights_hist/layers.0.mlp_norm.weight") continue;
    EXPECT_EQ(one.least, 1);  // all ones
    EXPECT_EQ(one.elements, static_cast<double>(config.model.hidden_size));
    EXPECT_EQ(one.counts[static_cast<size_t>(H::kMagnitudes + 32 * 4 + 1)], one.elements);
  }
  EXPECT_TRUE(tags.contains("weights_hist/layers.0.mlp_norm.weight"));
  EXPECT_TRUE(tags.contains("gradients_hist/layers.0.mlp_norm.weight"));
  EXPECT_FALSE(tags.contains("weights_hist/final_norm.weight")) << "of the sentinel layers alone, but in debug";
  config.tensorboard_dir.clear();
  EXPECT_EQ(run_sentinels(config).steps.at(0)->histograms, nullptr) << "nobody reads them";
}

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
