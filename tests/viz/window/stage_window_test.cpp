// The stage: follows the cursor, steps, and is clicked on, on the step of tests/viz/model/stage_sample.h.
#include <imgui_internal.h>

#include <cmath>

#include "tests/viz/model/stage_sample.h"
#include "tests/viz/model/zero_sample.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/model/store/generated_trace.h"
#include "viz/panels/stage/stage_panel.h"

namespace ranklab::viz {
namespace {

class StageWindowTest : public WindowTest {
 protected:
  StagePanel& stage() { return dynamic_cast<StagePanel&>(*app().panel("stage")); }
  const StageScript& script() { return workspace().stage(); }
};

TEST_F(StageWindowTest, is_beside_the_timeline_when_the_window_opens) {
  workspace().load(TraceStore(samples::one_microbatch()));
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    const ImRect panel = ctx.GetWindowByRef("//###stage")->Rect();
    const ImRect timeline = ctx.GetWindowByRef("//###timeline")->Rect();
    IM_CHECK(app().is_open("stage"));
    IM_CHECK_GE(panel.Min.x, timeline.Max.x);
    IM_CHECK_EQ(panel.Min.y, timeline.Min.y);
  });
}

TEST_F(StageWindowTest, steps_by_microbatch_layer_and_event) {
  workspace().load(TraceStore(samples::one_microbatch()));
  app().use_layout("Stage");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    ctx.SetRef("//###stage");
    IM_CHECK_EQ(workspace().cursor.time_ns, 0);
    ctx.ItemClick("forward");
    IM_CHECK_EQ(workspace().cursor.time_ns, 110);
    ctx.ItemClick("layer");
    ctx.ItemClick("forward");
    IM_CHECK_EQ(workspace().cursor.time_ns, 120);
    ctx.ItemClick("event");
    ctx.ItemClick("forward");
    IM_CHECK_EQ(workspace().cursor.time_ns, 210);
    IM_CHECK(workspace().cursor.event.has_value());
    ctx.ItemClick("back");
    IM_CHECK_EQ(workspace().cursor.time_ns, 120);
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiKey_RightArrow);
    IM_CHECK_EQ(workspace().cursor.time_ns, 210);
    ctx.KeyPress(ImGuiMod_Alt | ImGuiKey_LeftArrow);
    IM_CHECK_EQ(workspace().cursor.time_ns, 120);
    ctx.ItemClick("###play");
    ctx.Yield(3);
    IM_CHECK(workspace().playback.state != PlayState::kPaused || workspace().cursor.time_ns > 120);
    workspace().playback.state = PlayState::kPaused;
  });
}

TEST_F(StageWindowTest, clicks_choose_a_rank_or_what_travels) {
  workspace().load(TraceStore(samples::one_microbatch()));
  app().use_layout("Stage");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    ctx.MouseMoveToPos(stage().middle_of_room(script(), 1));
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().filter.only_rank, 1);
    // Alone, it steps by its own microbatches.
    workspace().set_time(0);
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiKey_RightArrow);
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiKey_RightArrow);
    IM_CHECK_EQ(workspace().cursor.time_ns, 210);
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK(!workspace().filter.active());

    workspace().cursor.event.reset();
    workspace().set_time(305);
    ctx.Yield(2);
    IM_CHECK_EQ(stage().flows().size(), 1u);
    ctx.MouseMoveToPos(stage().middle_of_flow(script(), stage().flows()[0]));
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK(workspace().cursor.event.has_value());
    IM_CHECK(workspace().store().event(*workspace().cursor.event).verb == Verb::kSend);
    IM_CHECK_EQ(workspace().cursor.time_ns, 300);
  });
  screenshot("stage");
}

TEST_F(StageWindowTest, the_scrubber_moves_the_shared_cursor) {
  workspace().load(TraceStore(samples::one_microbatch()));
  app().use_layout("Stage");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    ctx.SetRef("//###stage");
    const ImRect rect = ctx.ItemInfo("scrubber").RectFull;
    ctx.MouseMoveToPos({rect.Min.x + rect.GetWidth() / 4, (rect.Min.y + rect.Max.y) / 2});
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK_LT(std::abs(static_cast<double>(workspace().cursor.time_ns) - 100), 3.0);
  });
}

TEST_F(StageWindowTest, draws_shards_and_a_large_step) {
  workspace().load(TraceStore(samples::zero_run(3)));
  app().use_layout("Stage");
  drive([&](ImGuiTestContext& ctx) {
    workspace().set_time(160);
    ctx.Yield(6);
    IM_CHECK(script().has_shards());
    workspace().load(TraceStore(generated_trace(100'000)));
    ctx.Yield(3);
    IM_CHECK_EQ(script().rooms.size(), 8u);
    workspace().load(TraceStore());
    ctx.Yield(3);
    IM_CHECK(script().empty());
  });
}

}  // namespace
}  // namespace ranklab::viz
