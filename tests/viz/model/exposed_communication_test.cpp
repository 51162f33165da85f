// What compute waits for on an axis whose transfers are of several kinds: the numbers are those of the named ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/model/make_trace.h"
#include "viz/model/insights/insight.h"

namespace ranklab::viz {
namespace {

// Two ranks: work 0..100, then four all_to_alls of 1 KiB that take 20 each, and between them all_gathers of 8 bytes
// that take 2 each, but for the last one, which takes 12.
TraceStore tokens_and_counts() {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "ep" + std::to_string(rank));
    tracer.set_group(Axis::kEp, {0, 1});
    tracer.record(samples::compute(tracer, "F", 0, 100));
    int64_t at = 100;
    const auto wait = [&](Verb verb, int64_t sequence, int64_t length, int64_t bytes) {
      tracer.record(samples::call(tracer, {.axis = Axis::kEp,
                                           .verb = verb,
                                           .sequence = sequence,
                                           .posted = at,
                                           .begin = at,
                                           .end = at + length,
                                           .exposed = length,
                                           .algorithm = bytes}));
      at += length;
    };
    for (int i = 0; i < 4; ++i) {
      wait(Verb::kAllGather, 2 * i, i == 3 ? 12 : 2, 8);
      wait(Verb::kAllToAll, 2 * i + 1, 20, 1024);
    }
    ranks.push_back(tracer.take());
  }
  return TraceStore(samples::file_of(std::move(ranks)), "by hand");
}

TEST(ExposedCommunication, CountsTheTransfersThatItNames) {
  const TraceStore store = tokens_and_counts();
  const std::vector<Insight> found = find_insights(store, store.whole());
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].text, "compute waits for all_to_all of ep: 8 transfers of 1.00 KiB that nothing hides");
  EXPECT_DOUBLE_EQ(found[0].share, 80.0 / 198);
  ASSERT_TRUE(found[0].event);
  EXPECT_EQ(store.event(*found[0].event).verb, Verb::kAllToAll);
}

// Work 0..100 on a rank, then a reduce_scatter of tp that takes as long.
TraceStore reduction_of(int64_t bytes) {
  Tracer tracer(0, "tp0");
  tracer.set_group(Axis::kTp, {0, 1});
  tracer.record(samples::compute(tracer, "F", 0, 100));
  tracer.record(samples::call(tracer, {.axis = Axis::kTp,
                                       .verb = Verb::kReduceScatter,
                                       .posted = 100,
                                       .begin = 100,
                                       .end = 200,
                                       .exposed = 100,
                                       .algorithm = bytes}));
  std::vector<RankTrace> ranks;
  ranks.push_back(tracer.take());
  return TraceStore(samples::file_of(std::move(ranks)), "by hand");
}

// Pieces of small messages would mostly add latency.
TEST(ExposedCommunication, LargeMessagesOfTensorParallelismShouldOverlap) {
  for (const auto& [mib, overlap] : {std::pair{64, true}, std::pair{1, false}}) {
    const TraceStore store = reduction_of(int64_t{mib} << 20);
    const std::vector<Insight> found = find_insights(store, store.whole());
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].advice.find("--tp-comm-overlap") != std::string::npos, overlap) << found[0].advice;
  }
}

}  // namespace
}  // namespace ranklab::viz
