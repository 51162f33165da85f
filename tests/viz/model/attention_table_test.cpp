// Which rank attends to what and when, on the run of attention_sample.h.
#include "viz/model/tables/attention_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/model/attention_sample.h"
#include "viz/model/insights/insight.h"
#include "viz/model/tables/op_table.h"

namespace ranklab::viz {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

AttentionTable table_of(const TraceStore& store) { return attention_table(store, store.whole()); }

TEST(AttentionTable, HasAUseForEachLayerAndPass) {
  const TraceStore store(samples::attention_run());
  const AttentionTable table = table_of(store);
  ASSERT_EQ(table.groups.size(), 1u);
  const AttentionGroup& group = table.groups[0];
  EXPECT_THAT(group.members, ElementsAre(0, 1));
  std::vector<std::string> words;
  for (const AttentionUse& use : group.uses) words.push_back(use_words(use));
  EXPECT_THAT(words,
              ElementsAre("layers.0.attention, microbatch 0", "layers.1.attention, microbatch 0",
                          "layers.1.attention backward, microbatch 0", "layers.0.attention backward, microbatch 0"));
  for (const AttentionUse& use : group.uses) {
    EXPECT_EQ(use.tiles[0].size(), 1u);
    ASSERT_EQ(use.tiles[1].size(), 2u);
    EXPECT_EQ(use.tiles[1][1].query, 1);
    EXPECT_EQ(use.tiles[1][1].key, 0);
  }
}

TEST(AttentionTable, WorkIsThePairs) {
  const TraceStore store(samples::attention_run());
  const AttentionGroup group = table_of(store).groups[0];
  const AttentionUse& use = group.uses[0];
  EXPECT_EQ(use.pairs(0), 3);
  EXPECT_EQ(use.pairs(1), 7);
  EXPECT_EQ(use.fullest(), 1u);
  EXPECT_DOUBLE_EQ(use.imbalance(), 1.4);
  EXPECT_TRUE(use.whole_triangle());
  EXPECT_EQ(use.busy_ns(0), 10);
  EXPECT_EQ(use.busy_ns(1), 30);
  EXPECT_EQ(balance_words(store, group, use), "rank 1 does 1.40 times the mean; --cp-balance zigzag would be 1.00");
}

TEST(AttentionTable, FollowsTheCursor) {
  const TraceStore store(samples::attention_run());
  const AttentionGroup group = table_of(store).groups[0];
  EXPECT_EQ(group.at(-5), 0u);
  EXPECT_EQ(group.at(10), 0u);
  EXPECT_EQ(group.at(109), 0u);
  EXPECT_EQ(group.at(110), 1u);
  EXPECT_EQ(group.at(999), 3u);
  const AttentionTile& second = group.uses[0].tiles[1][1];  // from 30 to 50
  EXPECT_FALSE(second.runs(29) || second.done(29));
  EXPECT_TRUE(second.runs(30) && second.runs(49));
  EXPECT_TRUE(second.done(50));
  EXPECT_EQ(store.begin_ns(second.event), 30);
}

TEST(AttentionTable, OfAStepHasThatStep) {
  const TraceStore store(samples::attention_run());
  EXPECT_EQ(attention_table(store, *store.step_window(0)).groups[0].uses.size(), 4u);
  EXPECT_TRUE(attention_table(store, {store.range(), 7}).empty());
}

TEST(AttentionTable, OfWholeSequencesIsEven) {
  TraceFile file = samples::attention_run();
  for (RankTrace& trace : file.ranks)
    for (Event& event : trace.events) {
      if (event.kind != EventKind::kAttention) continue;
      trace.arrays[event.array - 1] = {4, 1, 0, 0, 0, 0};
      if (trace.names[event.name].starts_with("attention q1 k0")) event.kind = EventKind::kKernel;
    }
  const TraceStore store(std::move(file));
  const AttentionGroup group = table_of(store).groups[0];
  ASSERT_EQ(group.uses.size(), 4u);
  EXPECT_TRUE(group.uses[0].by_heads());
  EXPECT_DOUBLE_EQ(group.uses[0].imbalance(), 1);
  EXPECT_THAT(balance_words(store, group, group.uses[0]), HasSubstr("1/2 of the heads"));
}

// a2a+p2p: both ranks have all tiles, each for half of the heads.
TEST(AttentionTable, RanksThatShareTilesAreCounted) {
  TraceFile file = samples::attention_run();
  for (RankTrace& trace : file.ranks)
    for (Event& event : trace.events) {
      if (event.kind != EventKind::kAttention) continue;
      trace.arrays[event.array - 1] = {4, 2, 0, 0, 0, 3, 1, 0, 4, 1, 1, 3};
      if (trace.names[event.name].starts_with("attention q1 k0")) event.kind = EventKind::kKernel;
    }
  const TraceStore store(std::move(file));
  const AttentionTable table = table_of(store);
  const AttentionUse& use = table.groups[0].uses[0];
  EXPECT_EQ(use.sharers(), 2u);
  EXPECT_TRUE(use.whole_triangle());
  EXPECT_THAT(attention_text(store, table), HasSubstr("2 ranks compute each block, with 1/2 of the heads each"));
  EXPECT_EQ(table_of(TraceStore(samples::attention_run())).groups[0].uses[0].sharers(), 1u);
}

TEST(AttentionTable, OfDamagedNumbersIsFinite) {
  TraceFile file = samples::attention_run();
  file.ranks[0].arrays[0] = {-1, 1e300, 5, -7, std::numeric_limits<double>::quiet_NaN(), 1e300};
  file.ranks[1].arrays[0] = {4};
  const TraceStore store(std::move(file));
  for (const AttentionGroup& group : table_of(store).groups)
    for (const AttentionUse& use : group.uses) EXPECT_TRUE(std::isfinite(use.imbalance()));
}

TEST(AttentionTable, TextShowsTheGrid) {
  const TraceStore store(samples::attention_run());
  const std::string text = attention_text(store, table_of(store));
  EXPECT_THAT(text, HasSubstr("2 chunks of 2 positions"));
  EXPECT_THAT(text, HasSubstr("queries  keys 0   1\n      0       0\n      1       1   1\n"));
  EXPECT_THAT(text, HasSubstr("max / mean 1.40: rank 1 does"));
  EXPECT_THAT(attention_text(TraceStore(), {}), HasSubstr("./ranklab train --cp 8"));
}

// In each pass rank 0 waits `late` ns for keys that rank 1 posts late.
std::vector<Insight> insights_of_waits(int64_t late) {
  TraceFile file = samples::attention_run();
  for (const int rank : {0, 1}) {
    RankTrace& trace = file.ranks[static_cast<size_t>(rank)];
    for (int pass = 0; pass < 4; ++pass) {
      const int64_t begin = 60 + 100 * pass;
      Event hop;
      hop.kind = EventKind::kCollective;
      hop.axis = Axis::kCp;
      hop.verb = Verb::kAllGather;
      hop.purpose = Purpose::kKeyValue;
      hop.step = 0;
      hop.sequence = pass;
      hop.virtual_posted_ns = begin + late * rank;
      hop.virtual_matched_ns = hop.virtual_begin_ns = hop.virtual_first_byte_ns = begin + late;
      hop.virtual_end_ns = begin + 30;
      hop.virtual_peer_wait_ns = rank == 0 ? late : 0;
      hop.virtual_exposed_ns = 30 - late;
      trace.events.push_back(hop);
    }
  }
  const TraceStore store(std::move(file));
  return find_insights(store, store.whole(), 8);
}

TEST(AttentionTable, InsightNamesTheFullRank) {
  const std::vector<Insight> found = insights_of_waits(20);
  const auto one = std::ranges::find(found, "attention balance", &Insight::rule);
  ASSERT_NE(one, found.end()) << insights_text(found);
  EXPECT_THAT(one->text, HasSubstr("rank 1 attends to 1.4 times the mean of 2"));
  EXPECT_EQ(one->advice, "try --cp-balance zigzag");
  EXPECT_DOUBLE_EQ(one->share, 4 * 20 / 800.0) << "of the time of both ranks";
  EXPECT_EQ(std::ranges::find(found, "straggler", &Insight::rule), found.end()) << "the same, said twice";
}

TEST(AttentionTable, UnevenWorkThatNobodyWaitsForCostsNothing) {
  const std::vector<Insight> found = insights_of_waits(0);
  EXPECT_EQ(std::ranges::find(found, "attention balance", &Insight::rule), found.end()) << insights_text(found);
}

TEST(AttentionTable, OperationsAreNotNamedByChunk) {
  const TraceStore store(samples::attention_run());
  std::vector<std::string> names;
  for (const OpRow& row : op_table(store, store.whole()))
    if (row.kind == EventKind::kAttention) names.push_back(row.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("attention", "attention backward"));
}

}  // namespace
}  // namespace ranklab::viz
