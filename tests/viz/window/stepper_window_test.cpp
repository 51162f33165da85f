// The stepper's panel on a live world of two ranks that are plain threads: a breakpoint is set, met, and removed.
#include <imgui_internal.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "core/live/live_source.h"
#include "core/trace/chrome_writer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/window/sample_traces.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/panels/stepper_panel.h"
#include "viz/panels/timeline/growing.h"

namespace ranklab::viz {
namespace {

// Ranks that do F 0 .. 5, one time unit each, under a stepper, until the object goes.
class TwoRanks {
 public:
  explicit TwoRanks(bool begins = true)
      : stepper_(std::make_shared<Stepper>(2, /*start_paused=*/true)), feed_(std::make_shared<LiveFeed>(2)) {
    if (begins) begin();
  }
  void begin() {
    stepper_->begin_run();
    for (int rank = 0; rank < 2; ++rank) {
      threads_.emplace_back([this, rank] {
        for (int i = 0; i < 6; ++i) {
          stepper_->arrive(
              rank,
              {.kind = BoundaryKind::kSpan, .name = "F", .step = 0, .microbatch = i, .virtual_ns = 1000 * i + rank});
          feed_->push(so_far(rank), {.kind = EventKind::kCompute,
                                     .step = 0,
                                     .microbatch = i,
                                     .virtual_begin_ns = 1000 * i,
                                     .virtual_end_ns = 1000 * (i + 1)});
        }
        stepper_->rank_ended(rank);
        if (--left_ == 0) stepper_->end_run();
      });
    }
  }
  ~TwoRanks() {
    stepper_->detach();
    for (std::thread& thread : threads_) thread.join();
  }
  std::shared_ptr<LiveSource> source() { return attach_in_process(feed_, stepper_); }

 private:
  static RankTrace so_far(int rank) {
    RankTrace trace;
    trace.global_rank = rank;
    trace.label = "pp" + std::to_string(rank);
    trace.names = {"F"};
    return trace;
  }
  std::shared_ptr<Stepper> stepper_;
  std::shared_ptr<LiveFeed> feed_;
  std::atomic<int> left_ = 2;
  std::vector<std::thread> threads_;
};

// The state that a viewer received when it attached is not the run's current state.
TEST(StepperPanel, ARunningRankIsNowhere) {
  StepperState state;
  state.ranks = {{.global_rank = 0, .activity = RankActivity::kRunning},
                 {.global_rank = 1, .activity = RankActivity::kBlocked}};
  state.ranks[0].at.step = state.ranks[1].at.step = 8;
  EXPECT_EQ(where_text(state), "until a breakpoint, or a pause");
  EXPECT_FALSE(is_up_to_date(state, state.ranks[0]));
  EXPECT_TRUE(is_up_to_date(state, state.ranks[1]));
  state.mode = StepperMode::kPaused;
  EXPECT_EQ(where_text(state).substr(0, 14), "step 8   state");
  EXPECT_TRUE(is_up_to_date(state, state.ranks[0]));
  state.mode = StepperMode::kEnded;
  EXPECT_FALSE(is_up_to_date(state, state.ranks[0])) << "it ran when the run ended";
}

// A rank that has recorded nothing, and one that waits for it.
TEST(Growing, WhatRanksDoNowGrowsUntilTheRunsTime) {
  TraceStore store;
  RankTrace first;
  first.names = {"F"};
  first.events = {{.kind = EventKind::kCompute, .step = 0, .virtual_begin_ns = 100, .virtual_end_ns = 200}};
  store.append(first);
  RankTrace second;
  second.global_rank = 1;
  store.append(second);
  StepperState state;
  state.mode = StepperMode::kPaused;
  state.ranks = {{.global_rank = 0, .activity = RankActivity::kBlocked, .waits_for = {1}, .virtual_ns = 200},
                 {.global_rank = 1, .activity = RankActivity::kParked, .virtual_ns = 260}};
  state.ranks[1].at = {.kind = BoundaryKind::kSpan, .name = "F", .microbatch = 3};
  const std::vector<GrowingBlock> blocks = growing_blocks(store, state);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].range.begin_ns, 200);
  EXPECT_EQ(blocks[0].range.end_ns, 260);
  EXPECT_EQ(blocks[0].words, "waits for r1");
  EXPECT_EQ(blocks[1].range.begin_ns, 100);  // it has recorded nothing
  EXPECT_EQ(blocks[1].words.substr(0, 15), "parked at F mb ");
  state.ranks[1].activity = RankActivity::kDone;
  EXPECT_EQ(growing_blocks(store, state).size(), 1U);
  state.mode = StepperMode::kEnded;
  EXPECT_TRUE(growing_blocks(store, state).empty());
}

// Three steps of a run whose first rank stops in the middle of the last one.
std::shared_ptr<LiveFeed> run_that_stops() {
  const auto feed = std::make_shared<LiveFeed>(4);
  for (const RankTrace& rank : three_steps().ranks) {
    const size_t count = rank.events.size() - (rank.global_rank == 0 ? 8 : 0);
    for (size_t i = 0; i < count; ++i) feed->push(rank, rank.events[i]);
  }
  return feed;
}

TEST_F(WindowTest, what_a_killed_run_did_at_last_is_not_known) {
  for (const bool killed : {false, true}) {
    const std::shared_ptr<LiveFeed> feed = run_that_stops();
    workspace().load(TraceStore());
    workspace().live = attach_in_process(feed, nullptr);
    drive([&](ImGuiTestContext& ctx) {
      ctx.Yield(6);
      feed->end(killed ? "[rank 0] killed" : "");
      ctx.Yield(6);
      const RankBubbles& first = workspace().bubbles_of_trace().ranks[0];
      IM_CHECK_EQ(first.time.by_cause_ns[static_cast<size_t>(BubbleCause::kDrain)] == 0, killed);
      IM_CHECK_EQ(first.unrecorded.empty(), !killed);
    });
  }
}

// As train --viz --viz-paused does: the ranks begin when the window is there.
TEST_F(WindowTest, shows_the_stepper_of_a_run_that_is_held_at_its_begin) {
  TwoRanks run(/*begins=*/false);
  app().start({.live = run.source()});
  app().use_layout("Pipeline");
  const auto in_front = [] { return ImGui::FindWindowByName("###stepper")->DockTabIsVisible; };
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    IM_CHECK(!in_front());
    run.begin();
    for (int i = 0; i < 2000 && !in_front(); ++i) ctx.Yield();
    IM_CHECK(in_front());
  });
  workspace().live = nullptr;
}

TEST_F(WindowTest, a_file_does_not_take_the_place_of_a_run_that_goes_on) {
  const std::shared_ptr<LiveFeed> feed = run_that_stops();
  workspace().live = attach_in_process(feed, nullptr);
  const std::string other = temporary_path("other") + ".json";
  RankTrace one;
  one.names = {"F"};
  one.events = {{.kind = EventKind::kCompute, .step = 0, .virtual_end_ns = 100}};
  write_chrome_trace(other, std::vector<RankTrace>{one});
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    workspace().requests.open_trace = other;
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().store().steps().size(), 3u);
    IM_CHECK(workspace().log_lines().back().text.find("this window shows a live run") != std::string::npos);
    feed->end("");
    ctx.Yield(6);
    workspace().requests.open_trace = other;
    ctx.Yield(6);
    IM_CHECK_EQ(workspace().store().ranks().size(), 1u);  // and none of the run's
  });
  std::filesystem::remove(other);
}

TEST_F(WindowTest, sets_meets_and_removes_a_breakpoint) {
  TwoRanks run;
  workspace().live = run.source();
  app().use_layout("Pipeline");
  StepperControl& stepper = *workspace().live->stepper();
  const auto settle = [&](ImGuiTestContext& ctx) {
    for (int i = 0; i < 2000 && stepper.state().mode != StepperMode::kPaused; ++i) ctx.Yield();
  };
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    app().open_panel("stepper");
    ctx.Yield(3);
    settle(ctx);
    IM_CHECK(stepper.state().mode == StepperMode::kPaused);
    ctx.SetRef("//###stepper");
    ctx.ItemClick("##breakpoint");
    ctx.KeyCharsReplaceEnter("F mb=x");
    IM_CHECK_EQ(stepper.state().breakpoints.size(), 0u);
    ctx.ItemClick("##breakpoint");
    ctx.KeyCharsReplaceEnter("F mb=3 rank=1");
    ctx.Yield(2);
    IM_CHECK_EQ(stepper.state().breakpoints.size(), 1u);
    ctx.ItemClick("event");  // rank 0 is first: it goes from F0 to F1
    ctx.Yield(2);
    settle(ctx);
    IM_CHECK_EQ(stepper.state().ranks[0].at.microbatch, 1);
    IM_CHECK_EQ(stepper.state().ranks[1].at.microbatch, 0);
    ctx.ItemClick("continue");
    ctx.Yield(2);
    settle(ctx);
    IM_CHECK_EQ(stepper.state().hits.size(), 1u);
    IM_CHECK_EQ(stepper.state().hits[0].global_rank, 1);
    IM_CHECK_EQ(stepper.state().hits[0].at.microbatch, 3);
    IM_CHECK_EQ(workspace().store().ranks().size(), 2u);  // the feed's events are in the timeline
    IM_CHECK(workspace().camera.end_ns >= static_cast<double>(workspace().store().range().end_ns));  // and in view
  });
  screenshot("stepper");
  drive([&](ImGuiTestContext& ctx) {
    ctx.SetRef("//###stepper");
    ctx.ItemClick("$$1/remove");
    ctx.Yield(2);
    IM_CHECK_EQ(stepper.state().breakpoints.size(), 0u);
  });
}

}  // namespace
}  // namespace ranklab::viz
