// Who is slow when a rank holds several stages: the rank with all of them, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/model/make_trace.h"
#include "viz/model/insights/insight.h"

namespace ranklab::viz {
namespace {

using samples::compute;
using ::testing::HasSubstr;

Event module(Tracer& tracer, const std::string& name, int64_t begin, int64_t end) {
  Event event = compute(tracer, name, begin, end);
  event.kind = EventKind::kModule;
  return event;
}

// Two ranks with two stages of one layer (100) each: 0 and 2, 1 and 3. Stage 3 has the head besides.
TraceStore two_stages_a_rank(int64_t head) {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "pp" + std::to_string(rank));
    for (const int chunk : {0, 1}) {
      const int stage = 2 * chunk + rank;
      const int64_t begin = chunk * 100, end = begin + 100 + (stage == 3 ? head : 0);
      tracer.record(compute(tracer, "F", begin, end, 0, 0, stage));
      tracer.record(module(tracer, "layers." + std::to_string(stage), begin, begin + 100));
      if (stage == 3) tracer.record(module(tracer, "head", begin + 100, end));
    }
    ranks.push_back(tracer.take());
  }
  return TraceStore(samples::file_of(std::move(ranks)), "by hand");
}

Insight balance_of(const TraceStore& store) {
  for (const Insight& insight : find_insights(store, {store.range(), -1}))
    if (insight.rule == "stage balance") return insight;
  return {};
}

TEST(StageBalance, ARankWithSeveralStagesIsNamedWithAllOfThem) {
  const Insight insight = balance_of(two_stages_a_rank(80));
  EXPECT_THAT(insight.text, HasSubstr("rank 1 (stages 1, 3) works 1.17 times the mean of the ranks"));
  EXPECT_THAT(insight.text, HasSubstr("for it has the head (28.57 % of its work)"));
  // One layer less would make the other rank as slow: 300 instead of 280.
  EXPECT_EQ(insight.advice, "no other split of 4 layers is better; more layers, or fewer stages");
}

TEST(StageBalance, ALayerLessIsAdvisedWhereItHelps) {
  const Insight insight = balance_of(two_stages_a_rank(300));
  EXPECT_EQ(insight.advice, "give the slow rank fewer layers: --pipeline-layout");
}

}  // namespace
}  // namespace ranklab::viz
