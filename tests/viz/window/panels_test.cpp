// What panels know without a window: dependencies, totals of an area, the workspace's cursor, filter and links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/live/live_source.h"
#include "tests/viz/window/sample_traces.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/selection.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/area_totals.h"
#include "viz/panels/parts/dependencies.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TraceStore steps() {
  TraceStore store(three_steps());
  store.set_unit_ns(kScheduleUnitNs);
  return store;
}

// "r1/F3 > r2/F3" for each.
std::vector<std::string> arrows(const TraceStore& store, const std::string& selection, int step) {
  std::vector<std::string> out;
  for (const Dependency& one : dependencies(store, find_selection(store, selection, step).value())) {
    out.push_back(selection_text(store, one.from) + " > " + selection_text(store, one.to) +
                  (one.incoming ? " in" : ""));
    EXPECT_EQ(store.event(one.from).step, step);
    EXPECT_EQ(store.event(one.to).step, step);
  }
  return out;
}

TEST(Dependencies, of_an_action_are_its_neighbours_in_the_pipeline) {
  const TraceStore store = steps();
  EXPECT_THAT(arrows(store, "r1/F3", 1), UnorderedElementsAre("r0/F3 > r1/F3 in", "r1/F3 > r2/F3"));
  EXPECT_THAT(arrows(store, "r2/BW5", 1), UnorderedElementsAre("r3/BW5 > r2/BW5 in", "r2/BW5 > r1/BW5"));
  // The ends of the pipeline: nothing comes before rank 0's forward, nothing after its backward.
  EXPECT_THAT(arrows(store, "r0/F0", 2), ElementsAre("r0/F0 > r1/F0"));
  EXPECT_THAT(arrows(store, "r0/BW7", 0), ElementsAre("r1/BW7 > r0/BW7 in"));
}

TEST(Dependencies, of_a_message_are_its_two_ends) {
  const TraceStore store = steps();
  const auto send = search_events(store, "send", 1);
  ASSERT_EQ(send.size(), 1u);
  const auto found = dependencies(store, send[0]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].from == send[0]);
  EXPECT_EQ(store.event(found[0].to).verb, Verb::kRecv);
}

TEST(AreaTotals, count_what_is_inside_with_its_part) {
  const TraceStore store(one_f_one_b());
  // The last rank works F BW F BW ... from 7 to 103; 10 to 16 are two rounds: F is 1 of 3 units.
  const AreaTotals totals = area_totals(store, {{10'000'000, 16'000'000}, 7, 7});
  ASSERT_GE(totals.rows.size(), 2u);
  EXPECT_EQ(totals.rows[0].paint, Paint::kBackward);
  EXPECT_EQ(totals.rows[0].total_ns, 4'000'000);
  EXPECT_EQ(totals.rows[1].paint, Paint::kForward);
  EXPECT_EQ(totals.rows[1].total_ns, 2'000'000);
  EXPECT_EQ(totals.rows[1].count, 2);
  // Half a forward at the beginning.
  const AreaTotals half = area_totals(store, {{500'000, 1'000'000}, 0, 7});
  ASSERT_FALSE(half.rows.empty());
  EXPECT_EQ(half.rows[0].total_ns, 500'000);
  EXPECT_THAT(half.rows[0].of_rank_ns, ElementsAre(500'000, 0, 0, 0, 0, 0, 0, 0));
}

TEST(TimeText, says_which_step_of_how_many) {
  TraceFile file = three_steps();
  for (RankTrace& rank : file.ranks)
    for (Event& event : rank.events) event.step = 10 * event.step + 5;
  const TraceStore store(std::move(file));
  EXPECT_EQ(place_text(store, 5), "1 of 3");
  EXPECT_EQ(place_text(store, 25), "3 of 3");
  EXPECT_EQ(place_text(store, -1), "3 steps") << "before the first";
}

TEST(WorkspaceTest, goes_to_links_and_makes_them) {
  Workspace workspace;
  workspace.load(steps());
  workspace.go_to("step=1,sel=r2/F3");
  EXPECT_EQ(workspace.step(), 1);
  EXPECT_EQ(workspace.deep_link().substr(0, 7), "step=1,");
  const std::string link = workspace.deep_link();
  workspace.go_to("step=2");
  EXPECT_EQ(workspace.cursor.time_ns, 2 * kThreeStepsLength);
  workspace.go_to(link);
  EXPECT_EQ(workspace.deep_link(), link);
  EXPECT_THROW(workspace.go_to("step=9"), Error);
  EXPECT_EQ(workspace.deep_link(), link);
}

// Live, its end comes with the last events; a file says nothing of it.
TEST(WorkspaceTest, a_live_run_that_fails_says_why) {
  for (const std::string error : {"", "[rank 1, step 2] training diverged\nmore"}) {
    const auto feed = std::make_shared<LiveFeed>(2);
    Workspace workspace;
    workspace.live = attach_in_process(feed, nullptr);
    workspace.poll_live();
    EXPECT_TRUE(workspace.has_live_run());
    EXPECT_EQ(workspace.run_end().words, "");
    feed->end(error);
    workspace.poll_live();
    EXPECT_FALSE(workspace.has_live_run());
    EXPECT_EQ(workspace.run_end().failed, !error.empty());
    EXPECT_EQ(workspace.run_end().words,
              error.empty() ? "" : "the run ended with an error: [rank 1, step 2] training diverged");
    EXPECT_EQ(workspace.log_lines().back().level, error.empty() ? LogLine::Level::kInfo : LogLine::Level::kError);
  }
}

// Also one that had ended before its viewer came.
TEST(WorkspaceTest, follows_a_live_run_to_its_end) {
  const auto feed = std::make_shared<LiveFeed>(1);
  RankTrace so_far;
  so_far.names = {"F"};
  for (int step = 0; step < 3; ++step) {
    Event event;
    event.kind = EventKind::kCompute;
    event.step = step;
    event.virtual_begin_ns = 5000 + 100 * step;
    event.virtual_end_ns = 5100 + 100 * step;
    feed->push(so_far, event);
  }
  feed->end("");
  Workspace workspace;
  workspace.live = attach_in_process(feed, nullptr);
  workspace.playback.state = PlayState::kFollowing;
  while (workspace.poll_live()) {
  }
  EXPECT_EQ(workspace.playback.state, PlayState::kPaused);
  EXPECT_EQ(workspace.cursor.time_ns, 5300);
  EXPECT_EQ(workspace.step(), 2);
  EXPECT_LT(workspace.camera.begin_ns, 5100);
  EXPECT_GT(workspace.camera.begin_ns, 5050) << "the last step and the one before it";
}

TEST(WorkspaceTest, filters_ranks_by_number_and_coordinate) {
  Workspace workspace;
  workspace.load(steps());
  workspace.filter.only_rank = 2;
  EXPECT_TRUE(workspace.visible(2));
  EXPECT_FALSE(workspace.visible(1));
  workspace.filter = {.only_rank = -1, .coordinates = {{Axis::kPp, 3}}};
  EXPECT_TRUE(workspace.visible(3));
  EXPECT_FALSE(workspace.visible(2));
}

TEST(WorkspaceTest, plays_in_a_loop_over_the_selection) {
  Workspace workspace;
  workspace.load(steps());
  workspace.area = Area{{10'000'000, 20'000'000}, 0, 3};
  workspace.playback = {.state = PlayState::kPlaying, .loop = LoopMode::kSelection, .speed = 1};
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(workspace.advance(0.1));  // a step of 33 units lasts ten seconds: 0.33 units
    if (i > 0) {
      EXPECT_GE(workspace.cursor.time_ns, 10'000'000);
      EXPECT_LT(workspace.cursor.time_ns, 20'000'000 + 330'000);
    }
  }
}

TEST(CameraTest, zooming_in_and_out_about_a_point_returns) {
  Camera camera{100, 1100};
  camera.zoom(0.5, 300, {0, 10'000});
  EXPECT_NEAR(camera.length_ns(), 500, 1e-9);
  EXPECT_NEAR((300 - camera.begin_ns) / camera.length_ns(), 0.2, 1e-12);
  camera.zoom(2, 300, {0, 10'000});
  EXPECT_NEAR(camera.begin_ns, 100, 1e-9);
  for (int i = 0; i < 200; ++i) camera.zoom(0.5, 300, {0, 10'000});
  EXPECT_NEAR(camera.length_ns(), 10, 1e-9);
  for (int i = 0; i < 200; ++i) camera.zoom(2, 300, {0, 10'000});
  EXPECT_NEAR(camera.length_ns(), 40'000, 1e-6);
}

}  // namespace
}  // namespace ranklab::viz
