// "run it" of the Schedules panel: on the ranklab program, and on shell scripts in its place.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/live/live_source.h"
#include "core/trace/tracer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/window/sample_traces.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/model/store/selection.h"
#include "viz/panels/what_if_panel.h"

namespace ranklab::viz {
namespace {

class WhatIfWindowTest : public WindowTest {
 protected:
  WhatIfPanel& panel() { return dynamic_cast<WhatIfPanel&>(*app().panel("what_if")); }

  // Shows the panel with p = 2 and m = 4, and presses the button of its first schedule, 1f1b.
  void run_it(ImGuiTestContext& ctx) {
    ctx.Yield(6);
    app().open_panel("what_if");
    ctx.Yield(3);
    ctx.ItemInputValue("//###what_if/##ranks", 2);
    ctx.ItemInputValue("//###what_if/##microbatches", 4);
    ctx.Yield(2);
    ctx.SetRef(ctx.WindowInfo("//###what_if/results").ID);
    ctx.ItemClick("$$0/run it");
    ctx.Yield(2);
  }
  void wait(ImGuiTestContext& ctx) {
    for (int i = 0; i < 12'000 && panel().run().running(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ctx.Yield();
    }
    ctx.Yield(2);
  }
  std::string script(const std::string& lines) {
    const std::string path = temporary_path("program") + ".sh";
    std::ofstream(path) << "#!/bin/sh\n" << lines << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
};

// A viewer that attaches to a run has no trace at first, then one rank's, then that of all.
TEST_F(WhatIfWindowTest, begins_with_the_pipeline_of_a_live_run) {
  const auto feed = std::make_shared<LiveFeed>(4);
  const std::vector<RankTrace> ranks = three_steps().ranks;
  workspace().live = attach_in_process(feed, nullptr);
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    app().open_panel("what_if");
    ctx.Yield(6);
    for (const RankTrace& rank : ranks) {
      for (const Event& event : rank.events) feed->push(rank, event);
      ctx.Yield(2);
    }
    IM_CHECK_EQ(panel().request().num_ranks, 4);
    IM_CHECK_EQ(panel().request().num_microbatches, 8);
    IM_CHECK_EQ(panel().request().num_chunks, 1);
  });
}

// Not with the panel's own example of 8 ranks.
TEST_F(WhatIfWindowTest, begins_with_one_rank_for_a_run_without_a_pipeline) {
  Tracer tracer(0, "");
  for (int microbatch = 0; microbatch < 3; ++microbatch) {
    Event event;
    event.kind = EventKind::kCompute;
    event.step = 0;
    event.microbatch = microbatch;
    for (const char* action : {"F", "BW"}) {
      event.name = tracer.intern(action);
      event.virtual_begin_ns = event.virtual_end_ns;
      event.virtual_end_ns += *action == 'F' ? 10 : 20;
      tracer.record(event);
    }
  }
  TraceFile file;
  file.ranks.push_back(tracer.take());
  workspace().load(TraceStore(std::move(file)));
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    app().open_panel("what_if");
    ctx.Yield(3);
    IM_CHECK(!panel().results().empty());
    for (const WhatIfResult& one : panel().results()) {
      IM_CHECK_STR_EQ(one.problem.c_str(), "");
      IM_CHECK_EQ(one.store.ranks().size(), 1u);
      IM_CHECK_EQ(one.makespan, 9.0);  // three microbatches of F 1 and BW 2
    }
  });
}

TEST_F(WhatIfWindowTest, trains_and_opens_the_trace) {
  if (!std::filesystem::exists(RANKLAB_BINARY)) GTEST_SKIP() << RANKLAB_BINARY << " is not built";
  panel().set_program(RANKLAB_BINARY);
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    run_it(ctx);
    wait(ctx);
    IM_CHECK_STR_EQ(panel().run().status().substr(0, 19).c_str(), "1f1b, p 2, m 4 ran ");
    const TraceStore& store = workspace().store();
    IM_CHECK_EQ(store.ranks().size(), 2u);
    IM_CHECK_EQ(store.steps().size(), 3u);
    IM_CHECK_EQ(search_events(store, "F3", 100).size(), 6u);  // the last of 4 microbatches: 2 ranks, 3 steps
    IM_CHECK(workspace().log_lines().back().text.starts_with("opened "));
  });
  screenshot("schedules_run");
}

TEST_F(WhatIfWindowTest, shows_why_a_run_has_failed) {
  const std::string refuses = script("echo \"refused: $*\" >&2; exit 2");
  panel().set_program(refuses);
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    run_it(ctx);
    wait(ctx);
    const std::string status = panel().run().status();
    const std::string expected =
        "1f1b, p 2, m 4 failed, exit code 2: refused: train --world-size 2 --pp 2 --num-layers 4 --mbs 1 --gbs 4 "
        "--num-microbatches 4 --pipeline-schedule 1f1b --train-iters 3 --mock-data --eval-interval 0 --sample-tokens 0 "
        "--log-dir ";
    IM_CHECK_STR_EQ(status.substr(0, expected.size()).c_str(), expected.c_str());
    IM_CHECK(workspace().log_lines().back().level == LogLine::Level::kError);
    IM_CHECK(workspace().store().empty());
  });
  screenshot("schedules_refused");
  drive([&](ImGuiTestContext& ctx) {
    ctx.ItemClick("//###what_if/x");
    ctx.Yield(2);
    IM_CHECK_STR_EQ(panel().run().status().c_str(), "");
  });
  std::filesystem::remove(refuses);
}

TEST_F(WhatIfWindowTest, cancels_a_run_though_another_panel_is_in_front) {
  const std::string sleeps = script("exec sleep 1000");
  panel().set_program(sleeps);
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    run_it(ctx);
    IM_CHECK(panel().run().running());
    IM_CHECK(app().animates());
    ctx.ItemClick("$$1/run it", 0, ImGuiTestOpFlags_NoError);  // one at a time
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().log_lines().size(), 1u);
    ctx.ItemClick("//###what_if/cancel");
    app().open_panel("path");
    wait(ctx);
    IM_CHECK(!panel().run().running());
    IM_CHECK_STR_EQ(panel().run().status().substr(0, 34).c_str(), "1f1b, p 2, m 4 was cancelled after");
    IM_CHECK(workspace().log_lines().back().text == panel().run().status());
  });
  std::filesystem::remove(sleeps);
}

}  // namespace
}  // namespace ranklab::viz
