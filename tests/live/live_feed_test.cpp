// Events on their way to viewers: a lost event is always counted, and no event waits for a reader.
#include "core/live/live_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/live/live_source.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

using testing::ElementsAre;

void record(Tracer& tracer, const char* name, int64_t at_ns) {
  Event event;
  event.kind = EventKind::kCompute;
  event.name = tracer.intern(name);
  event.virtual_begin_ns = event.virtual_end_ns = at_ns;
  tracer.record(event);
}

TEST(LiveFeedTest, ReadersSeeWhatIsRecordedEachAtItsOwnPace) {
  const auto feed = std::make_shared<LiveFeed>(2);
  Tracer tracer(1, "dp0 tp1");
  tracer.set_sink(feed.get());
  tracer.set_step(3);
  tracer.set_group(Axis::kTp, {0, 1});
  LiveReader early(feed);
  RankTrace batch;
  EXPECT_FALSE(early.read(1, batch));
  record(tracer, "F", 10);
  ASSERT_TRUE(early.read(1, batch));
  EXPECT_EQ(batch.label, "dp0 tp1");
  EXPECT_THAT(batch.names, ElementsAre("F"));
  ASSERT_EQ(batch.events.size(), 1U);
  EXPECT_EQ(batch.events[0].step, 3);
  ASSERT_EQ(batch.groups.size(), 1U);
  EXPECT_FALSE(early.read(1, batch));
  EXPECT_FALSE(early.read(0, batch));
  record(tracer, "B", 20);
  LiveReader late(feed);
  ASSERT_TRUE(late.read(1, batch));
  EXPECT_EQ(batch.events.size(), 2U);
  ASSERT_TRUE(early.read(1, batch));
  EXPECT_EQ(batch.events.size(), 1U);
  EXPECT_THAT(batch.names, ElementsAre("F", "B"));
  EXPECT_EQ(batch.events[0].name, 1U);
  EXPECT_EQ(tracer.trace().events.size(), 2U) << "the trace keeps them, too";
}

TEST(LiveFeedTest, NumbersOfEventsComeInBoundedBatches) {
  const auto feed = std::make_shared<LiveFeed>(1, 8);
  Tracer tracer(0, "");
  tracer.set_sink(feed.get());
  LiveReader reader(feed);
  Event event;
  event.name = tracer.intern("expert load");
  tracer.record(event, {1, 2});
  tracer.record(event);
  tracer.record(event, std::vector<double>(LiveReader::kMostNumbers, 7.0));
  RankTrace batch;
  ASSERT_TRUE(reader.read(0, batch));
  ASSERT_EQ(batch.events.size(), 2U) << "the third would make more than kMostNumbers";
  EXPECT_THAT(batch.arrays, ElementsAre(ElementsAre(1, 2)));
  EXPECT_EQ(batch.events[0].array, 1U);
  EXPECT_EQ(batch.events[1].array, 0U);
  ASSERT_TRUE(reader.read(0, batch));
  ASSERT_EQ(batch.events.size(), 1U);
  EXPECT_EQ(batch.arrays[batch.events[0].array - 1].size(), LiveReader::kMostNumbers);
  EXPECT_EQ(tracer.trace().arrays.size(), 2U);
  EXPECT_EQ(tracer.trace().events[2].array, 2U);
}

TEST(LiveFeedTest, ASlowReaderLosesTheOldestAndIsTold) {
  const auto feed = std::make_shared<LiveFeed>(1, 8);
  Tracer tracer(0, "");
  tracer.set_sink(feed.get());
  LiveReader reader(feed);
  RankTrace batch;
  for (int i = 0; i < 20; ++i) record(tracer, "F", i);
  ASSERT_TRUE(reader.read(0, batch));
  EXPECT_EQ(batch.dropped, 12);
  ASSERT_EQ(batch.events.size(), 8U);
  EXPECT_EQ(batch.events[0].virtual_begin_ns, 12);
  for (int i = 20; i < 23; ++i) record(tracer, "F", i);
  ASSERT_TRUE(reader.read(0, batch, 2));
  EXPECT_EQ(batch.events.size(), 2U);
  EXPECT_EQ(batch.dropped, 12) << "the total so far";
  EXPECT_EQ(reader.dropped(), 12);
}

TEST(LiveFeedTest, ReadWhileItIsWritten) {
  const auto feed = std::make_shared<LiveFeed>(1, 64);
  constexpr int kEvents = 20'000;
  std::thread writer([&] {
    Tracer tracer(0, "");
    tracer.set_sink(feed.get());
    tracer.set_keeping(false);
    for (int i = 0; i < kEvents; ++i) record(tracer, "F", i);
    feed->end("");
  });
  LiveReader reader(feed);
  RankTrace batch;
  int64_t seen = 0, last = -1;
  for (bool ended = false; !ended || reader.read(0, batch);) {
    if (!ended) {
      ended = feed->ended();
      if (!reader.read(0, batch)) continue;
    }
    for (const Event& event : batch.events) {
      ASSERT_GT(event.virtual_begin_ns, last);
      last = event.virtual_begin_ns;
      ++seen;
    }
  }
  writer.join();
  EXPECT_EQ(last, kEvents - 1);
  EXPECT_EQ(seen + reader.dropped(), kEvents);
}

TEST(LiveFeedTest, ASourceInThisProcess) {
  const auto feed = std::make_shared<LiveFeed>(2);
  const auto stepper = std::make_shared<Stepper>(2);
  const auto source = attach_in_process(feed, stepper);
  EXPECT_EQ(source->status(), LiveStatus::kFollowing);
  EXPECT_EQ(source->world_size(), 2);
  EXPECT_EQ(source->stepper(), stepper.get());
  Tracer tracer(1, "");
  tracer.set_sink(feed.get());
  record(tracer, "F", 10);
  ASSERT_EQ(source->take().size(), 1U);
  EXPECT_TRUE(source->take().empty());
  feed->end("[rank 1] made up");
  EXPECT_EQ(source->status(), LiveStatus::kEnded);
  EXPECT_EQ(source->message(), "[rank 1] made up");
}

}  // namespace
}  // namespace ranklab
