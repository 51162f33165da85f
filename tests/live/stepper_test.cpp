// The stepper alone, with threads that are ranks of nobody's world: what moves, what stays, and in which order.
#include "core/live/stepper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/trace/tracer.h"

namespace ranklab {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

Boundary action(const char* name, int microbatch, int64_t virtual_ns, int step = 0) {
  return {.kind = BoundaryKind::kSpan, .name = name, .step = step, .microbatch = microbatch, .virtual_ns = virtual_ns};
}

// Runs one thread per rank until all bodies are done.
class Ranks {
 public:
  Ranks(Stepper& stepper, const std::vector<std::function<void()>>& bodies)
      : stepper_(stepper), left_(static_cast<int>(bodies.size())) {
    stepper_.begin_run();
    for (size_t rank = 0; rank < bodies.size(); ++rank) {
      threads_.emplace_back([this, rank, body = bodies[rank]] {
        body();
        stepper_.rank_ended(static_cast<int>(rank));
        if (--left_ == 0) stepper_.end_run();
      });
    }
  }
  ~Ranks() {
    stepper_.detach();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  Stepper& stepper_;
  std::atomic<int> left_;
  std::vector<std::thread> threads_;
};

struct Walk {
  explicit Walk(int world_size, bool paused = true) : stepper(world_size, paused) {}
  void come(int rank, Boundary at) {
    stepper.arrive(rank, at);
    const std::lock_guard lock(mutex);
    passed.push_back("r" + std::to_string(rank) + " " + to_text(at));
  }
  StepperState settle() {
    EXPECT_TRUE(stepper.wait_paused(seconds(20)));
    return stepper.state();
  }
  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex);
    return passed;
  }
  Stepper stepper;
  std::mutex mutex;
  std::vector<std::string> passed;
};

// Rank r's events are at 10 + r, 20 + r, ... so they interleave.
std::vector<std::function<void()>> interleaved(Walk& walk, int world_size, int events) {
  std::vector<std::function<void()>> bodies;
  for (int rank = 0; rank < world_size; ++rank) {
    bodies.emplace_back([&walk, rank, events] {
      for (int i = 0; i < events; ++i) walk.come(rank, action("F", i, 10 * (i + 1) + rank));
    });
  }
  return bodies;
}

TEST(StepperTest, SmallestVirtualTimeGoesFirst) {
  Walk walk(3);
  const Ranks ranks(walk.stepper, interleaved(walk, 3, 2));
  StepperState state = walk.settle();
  EXPECT_EQ(state.mode, StepperMode::kPaused);
  EXPECT_EQ(next_rank(state), 0);
  EXPECT_THAT(walk.seen(), ElementsAre());
  for (int i = 0; i < 4; ++i) {
    walk.stepper.step_events(1);
    state = walk.settle();
  }
  EXPECT_THAT(walk.seen(), ElementsAre("r0 F mb 0", "r1 F mb 0", "r2 F mb 0", "r0 F mb 1"));
  EXPECT_EQ(next_rank(state), 1);
  EXPECT_EQ(state.ranks[0].activity, RankActivity::kDone);
}

TEST(StepperTest, SeveralEventsAtOnceAreTheSameEvents) {
  uint64_t one_by_one = 0;
  {
    Walk walk(3);
    const Ranks ranks(walk.stepper, interleaved(walk, 3, 5));
    walk.settle();
    for (int i = 0; i < 7; ++i) walk.stepper.step_events(1), one_by_one = walk.settle().hash;
  }
  Walk walk(3);
  const Ranks ranks(walk.stepper, interleaved(walk, 3, 5));
  walk.settle();
  walk.stepper.step_events(7);
  EXPECT_EQ(walk.settle().hash, one_by_one);
  EXPECT_EQ(walk.seen().size(), 7U);
}

TEST(StepperTest, TheHashKnowsNamesOrderAndTimes) {
  const auto hash_of = [](const char* name, int64_t virtual_ns) {
    Walk walk(1);
    const Ranks ranks(walk.stepper, {[&walk, name, virtual_ns] { walk.come(0, action(name, 0, virtual_ns)); }});
    return walk.settle().hash;
  };
  EXPECT_EQ(hash_of("F", 10), hash_of("F", 10));
  EXPECT_NE(hash_of("F", 10), hash_of("B", 10));
  EXPECT_NE(hash_of("F", 10), hash_of("F", 11));
}

TEST(StepperTest, OneRankAlone) {
  Walk walk(3);
  const Ranks ranks(walk.stepper, interleaved(walk, 3, 4));
  walk.settle();
  walk.stepper.step_rank(2, 3);
  const StepperState state = walk.settle();
  EXPECT_THAT(walk.seen(), ElementsAre("r2 F mb 0", "r2 F mb 1", "r2 F mb 2"));
  EXPECT_EQ(state.ranks[2].events, 4);
  EXPECT_EQ(state.ranks[0].events, 1);
}

// Rank 0 sleeps for rank 1, which sleeps for rank 2: only rank 2 can bring them on.
TEST(StepperTest, ARankThatWaitsIsBroughtOnByTheOneItWaitsFor) {
  Walk walk(4);
  std::mutex mutex;
  std::condition_variable wake;
  bool sent[2] = {false, false};
  const auto receive = [&](int rank, int from) {
    std::unique_lock lock(mutex);
    if (sent[rank]) return;
    walk.stepper.blocked(rank, "recv", {from});
    wake.wait(lock, [&] { return sent[rank]; });
  };
  const auto send = [&](int to) {
    const std::lock_guard lock(mutex);
    sent[to] = true;
    walk.stepper.unblocked(to);
    wake.notify_all();
  };
  {
    const Ranks ranks(walk.stepper,
                      {[&] { receive(0, 1), walk.come(0, action("F", 0, 50)); },
                       [&] { receive(1, 2), send(0), walk.come(1, action("F", 0, 40)); },
                       [&] { walk.come(2, action("F", 0, 30)), send(1), walk.come(2, action("B", 0, 35)); },
                       [&] { walk.come(3, action("F", 0, 1)); }});
    StepperState state = walk.settle();
    EXPECT_EQ(state.ranks[0].activity, RankActivity::kBlocked);
    EXPECT_EQ(state.ranks[0].inside, "recv");
    EXPECT_THAT(state.ranks[0].waits_for, ElementsAre(1));
    EXPECT_EQ(next_rank(state), 3);
    walk.stepper.step_rank(0, 1);
    state = walk.settle();
    EXPECT_THAT(walk.seen(), ElementsAre("r2 F mb 0")) << "rank 3 was not needed";
    EXPECT_EQ(state.ranks[0].activity, RankActivity::kParked);
    EXPECT_EQ(to_text(state.ranks[0].at), "F mb 0");
    EXPECT_EQ(state.ranks[2].at.name, "B");
  }
}

TEST(StepperTest, BreakpointsStopAndCount) {
  Walk walk(2);
  const Ranks ranks(walk.stepper, interleaved(walk, 2, 4));
  walk.settle();
  walk.stepper.add_breakpoint(parse_breakpoint("F mb=2"));
  walk.stepper.add_breakpoint(parse_breakpoint("rank=1 mb=2"));
  walk.stepper.resume();
  StepperState state = walk.settle();
  ASSERT_EQ(state.hits.size(), 1U);
  EXPECT_EQ(state.hits[0].breakpoint, 1);
  EXPECT_EQ(state.hits[0].global_rank, 0);
  walk.stepper.resume();
  state = walk.settle();
  ASSERT_EQ(state.hits.size(), 2U) << "both apply to rank 1";
  EXPECT_EQ(state.hits[1].breakpoint, 2);
  EXPECT_EQ(state.breakpoints[0].hits, 2);
  walk.stepper.remove_breakpoint(1);
  walk.stepper.remove_breakpoint(77);
  EXPECT_EQ(walk.stepper.state().breakpoints.size(), 1U);
  walk.stepper.resume();
  walk.settle();
  EXPECT_EQ(walk.seen().size(), 8U);
}

TEST(StepperTest, CountersAndWaits) {
  Walk walk(1);
  const auto counter = [&](double value, int step) {
    Event event;
    event.kind = EventKind::kCounter;
    event.step = step;
    event.value = value;
    walk.stepper.recorded(0, event, "loss");
  };
  const auto waited = [&](int64_t ns) {
    Event event;
    event.kind = EventKind::kCollective;
    event.step = 9;
    event.virtual_peer_wait_ns = ns;
    walk.stepper.recorded(0, event, "all_reduce");
  };
  const Ranks ranks(walk.stepper, {[&] {
                      walk.come(0, action("F", 0, 1));
                      counter(1, 0), counter(3, 0), counter(4, 0), counter(5, 1);
                      waited(100), waited(3000);
                      walk.come(0, action("F", 1, 2));
                    }});
  walk.settle();
  walk.stepper.add_breakpoint(parse_breakpoint("loss > 2"));
  walk.stepper.add_breakpoint(parse_breakpoint("wait > 1us"));
  std::vector<std::string> where;
  for (int i = 0; i < 3; ++i) {
    walk.stepper.resume();
    const StepperState state = walk.settle();
    ASSERT_EQ(state.hits.size(), 1U);
    where.push_back(to_text(state.hits[0].at) + " in step " + std::to_string(state.hits[0].at.step));
  }
  EXPECT_THAT(where, ElementsAre("loss = 3 in step 0", "loss = 5 in step 1", "wait = 3.00 us in step 9"));
}

TEST(StepperTest, DetachHoldsNobodyAnyMore) {
  Walk walk(3);
  {
    const Ranks ranks(walk.stepper, interleaved(walk, 3, 50));
    walk.stepper.add_breakpoint(parse_breakpoint("F"));
    walk.settle();
    walk.stepper.detach();
  }
  EXPECT_EQ(walk.seen().size(), 150U);
}

TEST(StepperTest, CommandsOfARunningOrEndedWorldDoNothing) {
  Walk walk(1, false);
  EXPECT_EQ(walk.stepper.state().mode, StepperMode::kRunning);
  EXPECT_TRUE(walk.stepper.state().ranks.empty());
  walk.stepper.step_events(1);
  walk.stepper.resume();
  EXPECT_EQ(walk.stepper.state().mode, StepperMode::kRunning);
  walk.stepper.end_run();
  walk.stepper.pause();
  walk.stepper.step_training(1);
  EXPECT_EQ(walk.stepper.state().mode, StepperMode::kEnded);
  EXPECT_TRUE(walk.stepper.wait_paused(std::chrono::milliseconds(0)));
}

TEST(StepperTest, TheRecorderHandsOnWhatItRecords) {
  Walk walk(1, false);
  Tracer tracer(0, "");
  tracer.set_stepper(&walk.stepper);
  tracer.set_step(4);
  tracer.set_microbatch(2);
  tracer.set_keeping(false);
  Event event;
  event.name = tracer.intern("F");
  event.kind = EventKind::kCompute;
  tracer.record(event);
  EXPECT_TRUE(tracer.trace().events.empty());
  walk.stepper.begin_run();
  walk.stepper.rank_ended(0);
  EXPECT_TRUE(walk.stepper.last_events(0).empty()) << "a new run forgets the old one";
}

}  // namespace
}  // namespace ranklab
