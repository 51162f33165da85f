// A run's socket and its viewers: they follow, step, come late, vanish, send garbage or never read, and the run does
// not notice.
#include "core/live/live_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/live/live_client.h"
#include "core/live/live_message.h"
#include "core/live/live_socket.h"
#include "core/trace/tracer.h"
#include "tests/cli/run_program.h"
#include "tests/eventually.h"

namespace ranklab {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// A run of one rank whose events the test makes.
struct LiveRun {
  explicit LiveRun(const std::string& name, size_t capacity = LiveFeed::kCapacity)
      : path(temporary_path(name)),
        feed(std::make_shared<LiveFeed>(2, capacity)),
        stepper(std::make_shared<Stepper>(2)),
        server(std::make_unique<LiveServer>(path, feed, stepper)),
        tracer(1, "dp0 tp1") {
    tracer.set_sink(feed.get());
    tracer.set_keeping(false);
    stepper->begin_run();
  }
  ~LiveRun() { stepper->detach(); }
  void record(int count) {
    for (int i = 0; i < count; ++i) {
      Event event;
      event.kind = EventKind::kCompute;
      event.name = tracer.intern("F");
      event.virtual_begin_ns = event.virtual_end_ns = recorded++;
      tracer.record(event);
    }
  }

  std::string path;
  std::shared_ptr<LiveFeed> feed;
  std::shared_ptr<Stepper> stepper;
  std::unique_ptr<LiveServer> server;
  Tracer tracer;
  int64_t recorded = 0;
};

// Two ranks that come to one boundary after the other, until this ends.
struct MarchingRanks {
  explicit MarchingRanks(Stepper& of) : stepper(of) {
    for (int rank = 0; rank < 2; ++rank) {
      threads[rank] = std::thread([this, rank] {
        for (int i = 0; passed >= 0; ++i) {
          stepper.arrive(rank, {.kind = BoundaryKind::kSpan, .name = "F", .step = i, .virtual_ns = 10 * i + rank});
          std::this_thread::sleep_for(std::chrono::microseconds(50));
          ++passed;
        }
        stepper.rank_ended(rank);
      });
    }
  }
  ~MarchingRanks() {
    passed = -1'000'000;
    stepper.detach();
    for (std::thread& thread : threads) thread.join();
  }

  Stepper& stepper;
  std::atomic<int> passed{0};
  std::thread threads[2];
};

// What a viewer has seen of rank 1.
struct Seen {
  int64_t events = 0, last = -1, dropped = 0;
  bool in_order = true;
  void take(LiveSource& source) {
    for (const RankTrace& batch : source.take()) {
      for (const Event& event : batch.events) {
        in_order = in_order && event.virtual_begin_ns > last && batch.names[event.name] == "F";
        last = event.virtual_begin_ns;
        ++events;
      }
      dropped = batch.dropped;
    }
  }
};

TEST(LiveServerTest, AViewerFollowsToTheEnd) {
  LiveRun run("follow");
  const auto source = attach(run.path);
  ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kFollowing; }));
  EXPECT_EQ(source->world_size(), 2);
  Seen seen;
  run.record(1000);
  EXPECT_TRUE(eventually([&] { return seen.take(*source), seen.events == 1000; })) << seen.events;
  run.record(10);
  run.feed->end("[rank 1] made up");
  EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kEnded; }));
  seen.take(*source);
  EXPECT_EQ(seen.events, 1010);
  EXPECT_TRUE(seen.in_order);
  EXPECT_EQ(seen.dropped, 0);
  EXPECT_EQ(source->message(), "[rank 1] made up");
}

TEST(LiveServerTest, ALateViewerFindsWhatIsStillThere) {
  LiveRun run("late", 100);
  run.record(250);
  const auto source = attach(run.path);
  Seen seen;
  EXPECT_TRUE(eventually([&] { return seen.take(*source), seen.events == 100; }));
  EXPECT_EQ(seen.last, 249);
  EXPECT_EQ(seen.dropped, 150);
}

// The recorded times of rank 1 are consecutive numbers: wherever some are missing, a batch begins that counts them.
TEST(LiveServerTest, LostEventsLieBeforeTheBatchThatCountsThem) {
  LiveRun run("gaps", 100);
  const auto source = attach(run.path);
  for (int round = 0; round < 5; ++round) {
    run.record(50);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // it is sent, but not taken
    run.record(5000);
  }
  int64_t next = 0, dropped = 0;
  EXPECT_TRUE(eventually([&] {
    for (const RankTrace& batch : source->take()) {
      next += batch.dropped - std::exchange(dropped, batch.dropped);
      for (const Event& event : batch.events) {
        EXPECT_EQ(event.virtual_begin_ns, next);
        next = event.virtual_begin_ns + 1;
      }
    }
    return next == 5 * 5050;
  }));
  EXPECT_GT(dropped, 0);
}

TEST(LiveServerTest, AViewerSteps) {
  LiveRun run("step");
  MarchingRanks ranks(*run.stepper);
  const auto source = attach(run.path);
  ASSERT_TRUE(eventually([&] { return source->stepper() != nullptr; }));
  StepperControl& control = *source->stepper();
  control.pause();
  ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kPaused; }));
  const StepperState before = control.state();
  EXPECT_EQ(before, run.stepper->state());
  control.step_events(3);
  ASSERT_TRUE(eventually([&] { return control.state().version > before.version + 1; }));
  ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kPaused; }));
  EXPECT_EQ(control.state().ranks[0].events + control.state().ranks[1].events,
            before.ranks[0].events + before.ranks[1].events + 3);
  Breakpoint there = parse_breakpoint("F rank=1");
  there.step = before.ranks[1].at.step + 10;
  control.add_breakpoint(there);
  control.resume();
  ASSERT_TRUE(eventually([&] { return !control.state().hits.empty(); }));
  EXPECT_EQ(control.state().hits[0].at.step, there.step);
  control.remove_breakpoint(1);
  ASSERT_TRUE(eventually([&] { return control.state().breakpoints.empty(); }));
  const int held = ranks.passed;
  control.resume();
  EXPECT_TRUE(eventually([&] { return ranks.passed > held; }));
}

TEST(LiveServerTest, TheSocketIsTheOwnersAlone) {
  const LiveRun run("mode");
  struct stat there {};
  ASSERT_EQ(::stat(run.path.c_str(), &there), 0);
  EXPECT_TRUE(S_ISSOCK(there.st_mode));
  EXPECT_EQ(there.st_mode & 0777, 0600U);
}

TEST(LiveServerTest, TheSocketGoesWithTheRunAndADeadOneIsReplaced) {
  std::string path;
  {
    LiveRun run("replace");
    path = run.path;
    EXPECT_THROW(LiveServer(path, run.feed, nullptr), Error) << "a living run is not pushed out";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // A run that was killed leaves its socket behind.
  { LiveSocket dead = listen_at(path); }
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto feed = std::make_shared<LiveFeed>(1);
  const LiveServer server(path, feed, nullptr);
  const auto source = attach("unix:" + path);
  EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kFollowing; }));
  EXPECT_EQ(source->stepper(), nullptr) << "nothing to step";
}

// A run that answers nobody, since a debugger holds it, lives all the same.
TEST(LiveServerTest, ARunWhoseQueueIsFullIsStillThere) {
  const std::string path = temporary_path("busy");
  const LiveSocket listener = listen_at(path);
  std::vector<LiveSocket> waiting;
  std::string refused;
  for (int i = 0; i < 100 && refused.empty(); ++i) {
    try {
      waiting.push_back(connect_to(path));
    } catch (const Error& error) {
      refused = error.what();
    }
  }
  EXPECT_THAT(refused, testing::AllOf(HasSubstr("a full queue"), testing::Not(HasSubstr("no run"))));
  try {
    const LiveSocket second = listen_at(path);
    ADD_FAILURE() << "pushed out";
  } catch (const Error& error) {
    EXPECT_EQ(error.text().got, "a run that listens there");
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  ::unlink(path.c_str());
}

TEST(LiveServerTest, PathsThatCannotBe) {
  const auto feed = std::make_shared<LiveFeed>(1);
  const auto text_of = [&](const std::string& path) {
    try {
      const LiveServer server(path, feed, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(text_of("/tmp/" + std::string(200, 'x')), HasSubstr("at most 107"));
  EXPECT_THAT(text_of("/no/such/folder/viz.sock"), HasSubstr("'/no/such/folder/viz.sock'"));
  const std::string file = temporary_path("plain_file");
  std::ofstream(file) << "precious";
  EXPECT_THAT(text_of(file), HasSubstr("a file of that name"));
  EXPECT_TRUE(std::filesystem::exists(file));
  try {
    attach(temporary_path("nobody"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no run listens at"));
    EXPECT_THAT(error.what(), HasSubstr("--viz-listen"));
  }
}

TEST(LiveServerTest, ViewersThatVanish) {
  LiveRun run("vanish");
  for (int i = 0; i < 40; ++i) {
    const auto source = attach(run.path);
    run.record(100);
    if (i % 2 == 0) eventually([&] { return source->status() == LiveStatus::kFollowing; });
  }
  EXPECT_TRUE(eventually([&] { return run.server->num_viewers() == 0; }));
  const auto source = attach(run.path);
  EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kFollowing; }));
}

TEST(LiveServerTest, WhatALostViewerHeldGoesOn) {
  LiveRun run("held");
  MarchingRanks ranks(*run.stepper);
  auto source = attach(run.path), other = attach(run.path);
  ASSERT_TRUE(eventually([&] { return source->stepper() != nullptr && other->stepper() != nullptr; }));
  source->stepper()->add_breakpoint(parse_breakpoint("F rank=1"));
  source->stepper()->pause();
  ASSERT_TRUE(eventually([&] { return other->status() == LiveStatus::kPaused; }));
  source.reset();
  ASSERT_TRUE(eventually([&] { return run.server->num_viewers() == 1; }));
  EXPECT_EQ(run.stepper->state().mode, StepperMode::kPaused) << "the other one may step it";
  const int held = ranks.passed;
  other.reset();
  EXPECT_TRUE(eventually([&] { return ranks.passed > held + 100; }));
  EXPECT_THAT(run.stepper->state().breakpoints, testing::IsEmpty());
}

TEST(LiveServerTest, ARunThatStartsPausedWaitsForACommand) {
  const auto stepper = std::make_shared<Stepper>(1, /*start_paused=*/true);
  LiveServer server(temporary_path("start"), std::make_shared<LiveFeed>(1), stepper);
  stepper->begin_run();
  std::thread rank([&] {
    stepper->arrive(0, {.kind = BoundaryKind::kSpan, .name = "F"});
    stepper->rank_ended(0);
  });
  ASSERT_TRUE(stepper->wait_paused(std::chrono::seconds(10)));
  for (const bool commands : {false, true}) {
    auto source = attach(server.path());
    ASSERT_TRUE(eventually([&] { return source->stepper() != nullptr && server.num_viewers() == 1; }));
    if (commands) source->stepper()->add_breakpoint(parse_breakpoint("W"));
    ASSERT_TRUE(eventually([&] { return stepper->state().breakpoints.empty() != commands; }));
    source.reset();
    ASSERT_TRUE(eventually([&] { return server.num_viewers() == 0; }));
    EXPECT_TRUE(commands || stepper->state().mode == StepperMode::kPaused);
  }
  EXPECT_TRUE(eventually([&] { return stepper->state().mode != StepperMode::kPaused; }));
  rank.join();
}

// The thread that serves them sleeps although one more waits for a place. (A busy machine gives it less time, not
// more.)
TEST(LiveServerTest, ViewersWithoutAPlaceCostNothing) {
  LiveRun run("full");
  std::vector<LiveSocket> viewers;
  for (int i = 1; i <= LiveServer::kMostViewers; ++i) {
    viewers.push_back(connect_to(run.path));
    viewers.back().send(attach_frame());
    ASSERT_TRUE(eventually([&] { return run.server->num_viewers() == i; }));
  }
  viewers.push_back(connect_to(run.path));
  const std::clock_t before = std::clock();  // of this process's threads
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
}

TEST(LiveServerTest, AViewerThatSendsGarbage) {
  LiveRun run("garbage");
  const auto good = attach(run.path);
  ASSERT_TRUE(eventually([&] { return good->status() == LiveStatus::kFollowing; }));
  const std::vector<std::string> garbage = {
      "GET / HTTP/1.1\r\n\r\n padded to a header",
      std::string(100'000, '\xff'),
      command_frame({}),
      attach_frame() + attach_frame(),
      raw_frame_bytes(kLiveMagic, 0, Packer().number(99).bytes()),
      attach_frame() + raw_frame_bytes(kLiveMagic, static_cast<uint32_t>(LiveType::kCommand), "short"),
      raw_frame_bytes(kLiveMagic, static_cast<uint32_t>(LiveType::kState), "")};
  for (size_t i = 0; i < garbage.size(); ++i) {
    LiveSocket viewer = connect_to(run.path);
    viewer.send(garbage[i]);
    EXPECT_TRUE(eventually([&] { return run.server->num_refused() == static_cast<int>(i) + 1; })) << i;
  }
  Seen seen;
  run.record(50);
  EXPECT_TRUE(eventually([&] { return seen.take(*good), seen.events == 50; })) << "the others are not disturbed";
}

TEST(LiveServerTest, AViewerThatNeverReads) {
  LiveRun run("deaf", 1000);
  LiveSocket deaf = connect_to(run.path);
  deaf.send(attach_frame());
  ASSERT_TRUE(eventually([&] { return run.server->num_viewers() == 1; }));
  const auto good = attach(run.path);
  ASSERT_TRUE(eventually([&] { return good->status() == LiveStatus::kFollowing; }));
  Seen seen;
  // Far more than its socket and its buffer hold; the rank continues as if the viewer were not there.
  for (int i = 0; i < 200; ++i) {
    run.record(500);
    EXPECT_TRUE(eventually([&] { return seen.take(*good), seen.last == run.recorded - 1; }));
  }
  EXPECT_EQ(seen.events, 100'000);
  EXPECT_EQ(run.server->num_viewers(), 2) << "it is still there, and has lost the oldest ones";
  run.feed->end("");
  EXPECT_TRUE(eventually([&] { return good->status() == LiveStatus::kEnded; }));
  run.server.reset();  // waits for the deaf one, but not for long
}

TEST(LiveServerTest, ARunThatVanishes) {
  auto run = std::make_unique<LiveRun>("run_gone");
  const auto source = attach(run->path);
  ASSERT_TRUE(eventually([&] { return source->status() == LiveStatus::kFollowing; }));
  run->record(3);
  run.reset();  // without a word of its end
  EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kEnded; }));
  EXPECT_THAT(source->message(), HasSubstr("the run is gone"));
  source->stepper()->pause();  // into the void
  EXPECT_EQ(source->stepper()->state().mode, StepperMode::kEnded);
}

// A server that lies is no danger to the viewer.
TEST(LiveServerTest, ARunThatSendsGarbage) {
  for (const std::string& garbage :
       {std::string(50, 'x'), state_frame({}), welcome_frame({.world_size = 2}) + attach_frame(),
        welcome_frame({.world_size = 2}) +
            raw_frame_bytes(kLiveMagic, static_cast<uint32_t>(LiveType::kEvents), "abc")}) {
    const std::string path = temporary_path("liar");
    const LiveSocket listener = listen_at(path);
    const auto source = attach(path);
    LiveSocket viewer;
    ASSERT_TRUE(eventually([&] { return (viewer = accept_viewer(listener)).is_open(); }));
    viewer.send(garbage);
    EXPECT_TRUE(eventually([&] { return source->status() == LiveStatus::kEnded; }));
    EXPECT_THAT(source->message(), testing::ContainsRegex("control connection.|live attach."));
    ::unlink(path.c_str());
  }
}

}  // namespace
}  // namespace ranklab
