// The experts' measures on numbers that a reader can add up, and the tables of a run made by hand.
#include "viz/model/tables/expert_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/viz/model/expert_sample.h"

namespace ranklab::viz {
namespace {

using samples::expert_run;
using samples::kSampleSteps;
using samples::sample_tokens;
using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LoadMeasuresTest, OfEightExperts) {
  const LoadMeasures m = measure_load(std::vector<double>{0, 10, 20, 30, 40, 50, 60, 110});
  EXPECT_EQ(m.sum, 320);
  EXPECT_EQ(m.ideal, 40);
  EXPECT_EQ(m.min, 0);
  EXPECT_EQ(m.max, 110);
  EXPECT_EQ(m.p50, 35);           // numpy.percentile([0,10,20,30,40,50,60,110], 50)
  EXPECT_DOUBLE_EQ(m.p75, 52.5);  // position 5.25
  EXPECT_DOUBLE_EQ(m.p90, 75);    // position 6.3
  EXPECT_DOUBLE_EQ(m.p95, 92.5);  // position 6.65
  EXPECT_DOUBLE_EQ(m.max_ratio, 2.75);
  EXPECT_EQ(m.max_excess, 70);
  EXPECT_DOUBLE_EQ(m.deviation, std::sqrt(1050.0));  // squares: 1600 900 400 100 0 100 400 4900, of 8
  EXPECT_DOUBLE_EQ(m.cv, std::sqrt(1050.0) / 40);
  EXPECT_THAT(m.dead, ElementsAre(0));
  EXPECT_EQ(m.ratio(60), 1.5);
}

TEST(LoadMeasuresTest, WithoutTokensNobodyIsDead) {
  const LoadMeasures none = measure_load(std::vector<double>{0, 0});
  EXPECT_THAT(none.dead, IsEmpty());
  EXPECT_EQ(none.cv, 0);
  EXPECT_EQ(none.max_ratio, 0);
  EXPECT_EQ(none.ratio(0), 0);
  EXPECT_EQ(measure_load({}).max, 0);
  const LoadMeasures even = measure_load(std::vector<double>{7, 7, 7});
  EXPECT_EQ(even.cv, 0);
  EXPECT_EQ(even.max_ratio, 1);
}

TEST(ExpertTableTest, HasEveryLayerAndStepOnce) {
  const TraceStore store(expert_run());
  const ExpertTable table = expert_table(store, store.whole());
  EXPECT_THAT(table.layers, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(table.steps, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(table.loads.size(), 24U);
  EXPECT_EQ(table.num_experts, 8);
  EXPECT_EQ(table.peers, 8);
  const LayerLoad* load = table.find(1, 4);
  ASSERT_NE(load, nullptr);
  // 32 more or less for each unit of lean, of 8 ranks: 2048 + 8 x 32 x {3, 1, -1, -3, 2, -2, 0, 0}.
  EXPECT_THAT(load->tokens, ElementsAre(2816, 2304, 1792, 1280, 2560, 1536, 2048, 2048));
  EXPECT_EQ(load->measures.ideal, 2048);
  EXPECT_EQ(load->measures.max_ratio, 1.375);
  EXPECT_EQ(load->dropped, 0);
  EXPECT_EQ(table.find(1, 2)->dropped, 24);  // not once for each of the 8 ranks
  EXPECT_THAT(table.find(1, 3)->measures.dead, ElementsAre(5));
  EXPECT_EQ(table.aux_loss.at(1), 0.005);
  EXPECT_EQ(table.find(7, 1), nullptr);
  EXPECT_EQ(table.find(1, 5), nullptr);
  EXPECT_EQ(table.find(-1, 4)->measures.sum, 6 * 8 * 2048);
  EXPECT_EQ(table.find(-1, 2)->dropped, 6 * 24);
}

TEST(ExpertTableTest, OfAWindow) {
  const TraceStore store(expert_run());
  const ExpertTable table = expert_table(store, *store.step_window(5));
  EXPECT_THAT(table.steps, ElementsAre(5));
  EXPECT_EQ(table.totals[0].tokens, table.find(5, 1)->tokens);
}

TEST(ExpertTableTest, SumsTheRanksWhereTheWholeIsNotYetKnown) {
  TraceFile file = expert_run();
  for (RankTrace& rank : file.ranks)
    std::erase_if(rank.events, [&](const Event& event) { return rank.names[event.name] == kExpertLoadEvent; });
  const TraceStore store(std::move(file));
  const ExpertTable table = expert_table(store, store.whole());
  std::vector<double> expected = sample_tokens(4, 1);
  for (double& count : expected) count *= 8;
  EXPECT_THAT(table.find(1, 4)->tokens, ElementsAreArray(expected));
  EXPECT_EQ(table.find(1, 2)->dropped, 24);
}

TEST(ExpertTableTest, PeersHoldPartsOfTheExperts) {
  const std::vector<double> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_THAT(peer_tokens(tokens, 4), ElementsAre(3, 7, 11, 15));
  EXPECT_THAT(peer_tokens(tokens, 1), ElementsAre(36));
  EXPECT_THAT(peer_tokens(tokens, 3), IsEmpty());
}

TEST(ExpertTableTest, HistoryOfALayer) {
  const TraceStore store(expert_run());
  const LoadHistory history = load_history(expert_table(store, store.whole()), 1);
  EXPECT_THAT(history.step, ElementsAre(0, 1, 2, 3, 4, 5));
  // 256 + 3 x 16 / (step + 1), rounded down as the sample does.
  EXPECT_THAT(history.max_ratio, ElementsAre(DoubleEq(304 / 256.0), DoubleEq(280 / 256.0), DoubleEq(271 / 256.0),
                                             DoubleEq(268 / 256.0), DoubleEq(265 / 256.0), DoubleEq(262 / 256.0)));
  ASSERT_EQ(history.bias.size(), 8U);
  EXPECT_DOUBLE_EQ(history.bias[0][5], -0.006);
  EXPECT_DOUBLE_EQ(history.bias[3][5], 0.006);
  EXPECT_THAT(history.bias[7], Each(0.0));
  EXPECT_EQ(history.bias_step.size(), static_cast<size_t>(kSampleSteps));
  EXPECT_THAT(load_history(expert_table(store, store.whole()), 9).step, IsEmpty());
}

TEST(ExpertTableTest, NumbersThatNoRunHasStayFinite) {
  RankTrace trace;
  trace.names = {std::string(kExpertLoadEvent)};
  Event event;
  event.array = 1;
  trace.events = {event};
  trace.arrays = {{std::numeric_limits<double>::infinity(), std::nan(""), -4, 3}};
  const TraceStore store(samples::file_of({trace}));
  const ExpertTable table = expert_table(store, store.whole());
  ASSERT_EQ(table.loads.size(), 1U);
  EXPECT_THAT(table.steps, IsEmpty());
  EXPECT_THAT(load_history(table, 0).step, IsEmpty());
  EXPECT_TRUE(std::isfinite(table.loads[0].measures.deviation));
  EXPECT_THAT(table.loads[0].measures.dead, ElementsAre(1, 2));
}

TEST(ExpertText, NamesWhatIsUneven) {
  const TraceStore store(expert_run());
  const std::string text = expert_text(expert_table(store, *store.step_window(1)));
  EXPECT_THAT(text, HasSubstr("tokens per expert, step 1\n"));
  EXPECT_THAT(text, HasSubstr("    4        8      16384     2048.0     1280     2048     2726     2816     1.375 "));
  EXPECT_THAT(text, HasSubstr("dead in layer 3: 5\n"));
  EXPECT_THAT(text, HasSubstr("tokens per expert-parallel peer (8)\n"));
  EXPECT_THAT(name_experts(std::vector<int>{1, 2, 3}, 2), HasSubstr("1, 2 and 1 more"));
  const TraceStore none(samples::straggler_store());
  EXPECT_THAT(expert_text(expert_table(none, none.whole())), HasSubstr("--preset deepseek_v3_tiny --ep 8"));
}

}  // namespace
}  // namespace ranklab::viz
