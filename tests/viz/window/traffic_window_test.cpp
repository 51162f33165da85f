// The traffic of a run, the mesh that it crosses, and where the members of a group disagree.
#include "tests/viz/window/sample_traces.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/model/tables/mismatch_view.h"
#include "viz/panels/traffic_panel.h"

namespace ranklab::viz {
namespace {

// Three steps of 4 stages, 8 microbatches: 24 sends down and 24 up in each.
TEST_F(WindowTest, adds_up_traffic_to_the_cursor_while_it_plays) {
  workspace().load(in_units(three_steps()));
  app().use_layout("Traffic");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    TrafficPanel& traffic = dynamic_cast<TrafficPanel&>(*app().panel("traffic"));
    IM_CHECK_EQ(traffic.matrix(workspace()).total().messages, 144);
    IM_CHECK_EQ(TrafficPanel::grid_height(800, 96), 704);
    IM_CHECK_GE(TrafficPanel::grid_height(140, 96), 100);  // of 800 x 600
    ctx.ItemClick("//###traffic/up to the cursor");
    workspace().set_time(kThreeStepsLength);  // where step 1 begins
    ctx.Yield(2);
    IM_CHECK_LE(traffic.matrix(workspace()).total().messages, 1);
    workspace().set_time(kThreeStepsLength + kThreeStepsLength / 2);
    ctx.Yield(2);
    const int64_t half = traffic.matrix(workspace()).total().messages;
    IM_CHECK(half > 10 && half < 40);
    workspace().set_time(2 * kThreeStepsLength - 1);
    ctx.Yield(2);
    IM_CHECK_EQ(traffic.matrix(workspace()).total().messages, 48);
    ctx.ItemClick("//###traffic/up to the cursor");
    ctx.Yield(2);
    IM_CHECK_EQ(traffic.matrix(workspace()).total().messages, 144);
  });
}

TEST_F(WindowTest, a_click_on_a_tile_of_the_mesh_shows_that_rank_alone) {
  workspace().load(in_units(one_f_one_b()));
  app().use_layout("Traffic");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    ctx.SetRef(ctx.WindowInfo("//###mesh/ranks").ID);
    ctx.ItemClick("$$5/rank");
    ctx.Yield(2);
    IM_CHECK_EQ(timeline().layout().ranks.size(), 1u);
    IM_CHECK(workspace().visible(5) && !workspace().visible(4));
    ctx.ItemClick("$$5/rank");
    ctx.Yield(2);
    IM_CHECK_EQ(timeline().layout().ranks.size(), 8u);
  });
}

// Two ranks of a tp group make six calls; rank 1 leaves out the third, so its later ones are numbered one less.
TraceFile with_a_call_left_out() {
  TraceFile file;
  for (int rank = 0; rank < 2; ++rank) {
    RankTrace trace;
    trace.global_rank = rank;
    trace.label = "tp" + std::to_string(rank);
    trace.names = {"all_reduce", "all_gather"};
    trace.groups = {{Axis::kTp, {0, 1}}};
    for (int call = 0; call < 6; ++call) {
      if (rank == 1 && call == 2) continue;
      Event event{.kind = EventKind::kCollective, .axis = Axis::kTp, .dtype = DType::kFloat32};
      event.verb = call == 2 ? Verb::kAllGather : Verb::kAllReduce;
      event.name = call == 2 ? 1 : 0;
      event.sequence = call - (rank == 1 && call > 2 ? 1 : 0);
      event.virtual_begin_ns = event.virtual_posted_ns = event.virtual_matched_ns = 1000 * call;
      event.virtual_end_ns = 1000 * call + 500;
      event.logical_bytes = 4096;
      trace.events.push_back(event);
    }
    file.ranks.push_back(trace);
  }
  return file;
}

TEST_F(WindowTest, shows_where_members_part_and_calls_in_order) {
  workspace().load(TraceStore(with_a_call_left_out()));
  app().use_layout("Traffic");
  const std::vector<MismatchView> views = mismatch_views(workspace().store());
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].divergence, 2);
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    ctx.ItemClick("//###comm/views/Do members agree?");
    ctx.Yield(2);
  });
  screenshot("members_part");
}

}  // namespace
}  // namespace ranklab::viz
