// Features compose: of every two choices of different features there is a run that has both, and it equals one rank
// (fp64, 1e-12: losses, gradients, weights, moments). Rows are found greedily, each bringing as many new pairs as a few
// random tries allow; pairs that resolve() refuses in every row stand, with the reason, in the table of combinations
// (core/config/requirements.h), or break a constraint between numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/config/requirements.h"
#include "tests/all_cases.h"
#include "tests/support/composition_space.h"
#include "tests/support/expect_training.h"
#include "tests/support/one_rank.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

// The pairs, so that none comes or goes unseen; the table says why.
const std::set<std::string> kRefused = {
    "layout cp 2 x tp 2 with schedule dualpipe",
    "layout cp 4 in two groups with schedule dualpipe",
    "layout cp 4 with schedule dualpipe",
    "layout cp 4 in two groups with ZeRO 0",
    "layout cp 4 in two groups with experts over all ranks",
    "layout dp 2 x tp 2 with schedule dualpipe",
    "layout dp 4 in two groups with schedule dualpipe",
    "layout dp 4 with schedule dualpipe",
    "layout dp 4 in two groups with ZeRO 0",
    "layout dp 4 x pp 2 in two groups with ZeRO 0",
    "layout dp 4 in two groups with experts over all ranks",
    "layout dp 4 x pp 2 in two groups with experts over all ranks",
    "layout dp 2 x tp 2 in two replicas, each step with schedule dualpipe",
    "layout dp 2 x tp 2 in two replicas, each step with experts over all ranks",
    "layout dp 4 in two replicas, in fragments with schedule dualpipe",
    "layout dp 4 in two replicas, in fragments with experts over all ranks",
    "layout dp 4 x pp 2 in two replicas, each step with experts over all ranks",
    "schedule dualpipe with growing batches yes",  // two microbatches at first, and it wants four
    "schedule zb-h1 with expert overlap yes",
    "schedule zb-v with expert overlap yes",
};

// Constraints between numbers, which are not rows of the table.
const std::set<std::string> kNumbers = {
    "the groups that shard optimizer states do not divide the ranks with the same experts",
    "each DiLoCo replica needs all experts",
};

// The reason of schedules that run all forwards before all backwards, which only the whole list has.
const std::string kNothingToOverlap = "--overlap-moe-expert-parallel-comm found no two microbatches to overlap";

bool is_of_the_pipeline(const std::string& why) { return why.starts_with("--pipeline-schedule dualpipe: "); }

TEST(Composition, WhatIsRefusedStandsInTheTable) {
  const FeatureSpace space = composition_space();
  const PairCover cover(space);
  std::set<std::string> known = kNumbers, seen, refused;
  for (const Requirement& row : requirements()) known.insert(row.why);
  if (all_cases()) known.insert(kNothingToOverlap);
  for (const FeaturePair& pair : cover.refused()) {
    const std::string why = cover.reason(pair);
    EXPECT_TRUE(known.contains(why) || is_of_the_pipeline(why)) << space.name_of(pair) << ": " << why;
    seen.insert(why);
    refused.insert(space.name_of(pair));
  }
  if (all_cases()) std::erase_if(refused, [](const std::string& pair) { return !kRefused.contains(pair); });
  EXPECT_EQ(refused, kRefused) << "a pair that is no longer refused leaves the table";
  // Some of each kind, or the search for rows has gone wrong.
  EXPECT_TRUE(seen.contains(*kNumbers.begin()));
  EXPECT_TRUE(std::ranges::any_of(seen, is_of_the_pipeline));
  EXPECT_GE(std::ranges::count_if(requirements(), [&](const Requirement& row) { return seen.contains(row.why); }), 2);
}

TEST(Composition, EveryTwoFeaturesTogetherEqualOneRank) {
  const FeatureSpace space = composition_space();
  const PairCover cover(space);
  OneRankRuns references(uneven_batches());
  for (const Row& row : cover.rows()) {
    SCOPED_TRACE(space.name_of(row));
    const TrainConfig config = space.config_of(row);
    expect_same_training(record_training(config, {.data = uneven_batches()}),
                         references.of(config, space.chosen(row, "model")),
                         config.optimizer == OptimizerKind::kSgd ? kRounding : kRoundingOfAdamW);
    if (HasFailure()) return;  // the first one says enough
  }
  EXPECT_GT(cover.rows().size(), 40);
}

}  // namespace
}  // namespace ranklab
