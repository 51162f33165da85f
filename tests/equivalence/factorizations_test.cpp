// Every factorization of 8 ranks over (tp, pp, ep, dp, cp), with and without sequence parallelism, times every ZeRO
// stage, three schedules, every way to split sequences, dense models, experts and latent attention, against one rank
// (fp64, 1e-12: losses, gradients, weights, moments after three steps). All of them with RANKLAB_ALL_CASES=1, the other
// features (run_features.h) drawn at random for each; else rows that hold every two choices of different features.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/config/requirements.h"
#include "tests/all_cases.h"
#include "tests/support/expect_training.h"
#include "tests/support/feature_space.h"
#include "tests/support/one_rank.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

const std::vector<std::string> kProduct = {
    "model", "layout", "schedule", "context", "experts", "ZeRO", "sequence parallelism"};

// Sizes that every factorization divides.
FeatureSpace factorization_space() {
  std::vector<RunFeature> features = run_features();
  keep_choices(features, "model", {"llama_gqa", "latent", "deepseek_experts"});
  keep_choices(features, "layout", factorizations(8));
  keep_choices(features, "schedule", {"1f1b", "interleaved-1f1b", "zb-h1"});
  // What changes one rank's run is crossed with layouts by composition_test.cpp; without it few runs of one rank do.
  keep_choices(features, "documents", {"one a sequence", "apart"});
  keep_choices(features, "pairwise accumulation", {"no"});
  keep_choices(features, "clipping", {"yes"});
  keep_choices(features, "optimizer", {"adamw"});
  keep_choices(features, "attention dropout", {"no"});
  keep_choices(features, "growing batches", {"no"});
  keep_choices(features, "unfused attention", {"no"});
  TrainConfig base = small_config();
  base.model.num_attention_heads = 8;
  base.global_batch_size = 16;
  base.train_iters = 3;
  base.adam_eps = 1e-5;
  base.trace = false;
  return {std::move(features), base, [](TrainConfig& c) {
            const ParallelDims& split = c.parallel;
            c.model.num_layers = std::max<int64_t>(2, split.pp * c.virtual_stages);
            c.num_microbatches = std::max(split.pp, 2);  // overlapped experts want two
          }};
}

const FeatureSpace& space() {
  static const FeatureSpace one = factorization_space();
  return one;
}

// Constraints between numbers, which are not rows of the table.
const std::set<std::string> kLimits = {
    "--ep x --etp does not divide dp x cp x tp, the ranks of a pipeline stage",
    "no divisor of --cp divides the heads, so no group of ranks can exchange them",
    "experts with --tp need --sequence-parallel: ranks that see the same tokens would each train the experts on them",
};

std::vector<Row> rows_to_train() {
  if (!all_cases()) return PairCover(space()).rows();
  std::vector<Row> rows;
  for (const Row& row : space().product(kProduct)) {
    const Row full = space().with_random_others(row, kProduct, rows.size());
    if (space().refusal(full).empty()) rows.push_back(full);
  }
  return rows;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = rows_to_train();
  return all;
}

std::set<std::string> known_reasons() {
  std::set<std::string> known = kLimits;
  for (const Requirement& row : requirements()) known.insert(row.why);
  return known;
}

TEST(FactorizationTable, RefusesForReasonsThatItStates) {
  const std::set<std::string> known = known_reasons();
  std::map<std::string, int> refused;
  int taken = 0;
  for (const Row& row : space().product(kProduct)) {
    const std::string why = space().refusal(row);
    if (why.empty()) {
      ++taken;
    } else if (++refused[why] == 1) {
      EXPECT_TRUE(known.contains(why)) << space().name_of(row) << ": " << why;
    }
  }
  EXPECT_EQ(refused.size(), kLimits.size()) << "a reason that refuses nothing leaves the list";
  EXPECT_GT(taken, 9000);
  RecordProperty("taken", taken);
  for (const auto& [why, count] : refused) RecordProperty(why.substr(0, why.find(':')), count);
  const PairCover cover(space());
  for (const FeaturePair& pair : cover.refused()) {
    const std::string why = cover.reason(pair);
    EXPECT_TRUE(known.contains(why)) << space().name_of(pair) << ": " << why;
  }
}

size_t pairs_held(const std::string& feature, const std::string& other) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const Row& row : rows()) pairs.emplace(space().chosen(row, feature), space().chosen(row, other));
  return pairs.size();
}

TEST(FactorizationTable, RowsHoldEveryTwoChoices) {
  const auto choices = [](const std::string& feature) {
    return space().features[feature_index(space().features, feature)].choices.size();
  };
  for (const RunFeature& other : space().features) {
    if (!other.of.empty() || other.name == "layout") continue;  // no part of some runs
    EXPECT_EQ(pairs_held("layout", other.name), choices("layout") * other.choices.size()) << other.name;
    EXPECT_EQ(pairs_held("context", other.name), choices("context") * other.choices.size()) << other.name;
  }
  const std::vector<std::string> layouts = factorizations(8);
  const auto layouts_with = [&](const char* axis) {
    return static_cast<size_t>(
        std::ranges::count_if(layouts, [&](const std::string& name) { return name.find(axis) != std::string::npos; }));
  };
  // Two ranks make no two levels.
  const size_t two_levels = 3 * layouts_with("cp 2");
  EXPECT_EQ(pairs_held("layout", "context"),
            layouts.size() + layouts_with("cp") * (choices("context") - 1) - two_levels);
  EXPECT_GE(rows().size(), 100u);
  RecordProperty("rows", static_cast<int>(rows().size()));
}

class Factorizations : public ::testing::TestWithParam<std::string> {};

TEST_P(Factorizations, EqualOneRank) {
  static OneRankRuns references(uneven_batches());
  for (const Row& row : rows()) {
    if (space().chosen(row, "layout") != GetParam()) continue;
    SCOPED_TRACE(space().name_of(row));
    const TrainConfig config = space().config_of(row);
    expect_same_training(record_training(config, {.data = uneven_batches()}),
                         references.of(config, space().chosen(row, "model")), kRounding);
    if (HasFailure()) return;  // the first one says enough
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::erase(name, ' ');
  std::ranges::replace(name, 'x', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(OfEight, Factorizations, ::testing::ValuesIn(factorizations(8)), test_name);

}  // namespace
}  // namespace ranklab
