// The panels of a mixture of experts, on the run of tests/viz/model/expert_sample.h.
#include <imgui_internal.h>

#include "tests/viz/model/expert_sample.h"
#include "tests/viz/window/sample_traces.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/panels/expert_panel.h"
#include "viz/panels/traffic_panel.h"

namespace ranklab::viz {
namespace {

class ExpertWindowTest : public WindowTest {
 protected:
  ExpertPanel& experts() { return dynamic_cast<ExpertPanel&>(*app().panel("experts")); }
  TrafficPanel& traffic() { return dynamic_cast<TrafficPanel&>(*app().panel("traffic")); }
  int64_t sent(size_t rank) { return traffic().matrix(workspace()).row_sum(rank).of(TrafficLayer::kLogical); }
};

TEST_F(ExpertWindowTest, follows_the_cursor_and_moves_it) {
  workspace().load(TraceStore(samples::expert_run()));
  app().use_layout("Traffic");
  workspace().requests.show_panel = "experts";
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    IM_CHECK(experts().shown(workspace()) != nullptr);
    IM_CHECK_EQ(experts().shown(workspace())->step, 1);
    workspace().go_to_step(0);
    ctx.Yield(2);
    IM_CHECK_EQ(experts().shown(workspace())->step, 0);
    IM_CHECK_EQ(experts().shown(workspace())->layer, 1);
    ctx.ItemInputValue("//###experts/##step", 4);
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().step(), 4);
    IM_CHECK_EQ(experts().shown(workspace())->step, 4);
    ctx.SetRef("//###experts");
    ctx.ComboClick("##layer/layer 3");
    ctx.Yield(2);
    IM_CHECK_EQ(experts().shown(workspace())->layer, 3);
    IM_CHECK_EQ(experts().shown(workspace())->measures.dead.size(), 1u);
    IM_CHECK_EQ(experts().shown(workspace())->measures.dead[0], 5);
    ctx.KeyPress(ImGuiMod_Shift | ImGuiKey_LeftArrow);  // the step before
    ctx.Yield(2);
    IM_CHECK_EQ(experts().shown(workspace())->step, 3);
  });
  screenshot("experts");
  drive([&](ImGuiTestContext& ctx) {
    ctx.SetRef("//###experts");
    ctx.ItemClick("all steps");
    ctx.ItemClick("sort by load");
    ctx.Yield(2);
    IM_CHECK_EQ(experts().shown(workspace())->step, -1);
    IM_CHECK_EQ(experts().shown(workspace())->measures.sum, 6 * 8 * 2048.0);
    ctx.ItemClick("traffic matrix");
    ctx.Yield(6);
    IM_CHECK(ctx.GetWindowByRef("//###traffic")->DockTabIsVisible);
  });
  screenshot("experts_sorted");
}

TEST_F(ExpertWindowTest, chooses_an_expert_in_the_heatmap) {
  workspace().load(TraceStore(samples::expert_run()));
  app().use_layout("Traffic");
  workspace().requests.show_panel = "experts";
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    ctx.SetRef(ctx.WindowInfo("//###experts/load").ID);
    const ImGuiTestItemInfo map = ctx.ItemInfo("heatmap");
    IM_CHECK(map.RectFull.GetWidth() > 100);
    // The last layer's third expert of eight.
    ctx.MouseMoveToPos({map.RectFull.Min.x + map.RectFull.GetWidth() * 2.5f / 8, map.RectFull.Max.y - 4});
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK_EQ(experts().shown(workspace())->layer, 4);
  });
  screenshot("experts_chosen");
}

TEST_F(ExpertWindowTest, filters_traffic_by_purpose_and_nodes) {
  workspace().load(TraceStore(samples::expert_run()));
  app().use_layout("Traffic");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    const int64_t dispatch = sent(3);  // what it begins with
    ctx.SetRef("//###traffic");
    ctx.ComboClick("##purpose/all purposes");
    ctx.Yield(2);
    const int64_t both = sent(3);
    IM_CHECK_GT(both, dispatch);
    ctx.ComboClick("##purpose/dispatch");
    ctx.Yield(2);
    IM_CHECK_EQ(sent(3), dispatch);
    // 6 steps, 4 layers, 1024 tokens x 2 x 256 x 2 bytes, less what rank 3 keeps.
    double keeps = 0;
    for (int step = 0; step < 6; ++step)
      for (int layer = 1; layer <= 4; ++layer) keeps += samples::sample_tokens(layer, step)[3] * samples::kRowBytes;
    IM_CHECK_EQ(dispatch, 6 * 4 * 1024 * 2 * 256 * 2 - static_cast<int64_t>(keeps));
    ctx.ComboClick("##nodes/intra-node");
    ctx.Yield(2);
    const int64_t inside = sent(3);
    ctx.ComboClick("##nodes/inter-node");
    ctx.Yield(2);
    IM_CHECK_EQ(inside + sent(3), dispatch);
    IM_CHECK_GT(sent(3), 0);
    IM_CHECK_EQ(traffic().matrix(workspace()).at(3, 0).messages, 0);
    ctx.ComboClick("##purpose/combine");
    ctx.ComboClick("##nodes/all links");
    ctx.Yield(2);
    IM_CHECK_EQ(sent(3), both - dispatch);
  });
  screenshot("traffic_combine");
}

TEST_F(ExpertWindowTest, shows_a_load_without_a_step) {
  Tracer tracer(0, "");
  tracer.record(samples::moment(tracer, kExpertLoadEvent, 5, -1, 2), {3, 1});
  workspace().load(TraceStore(samples::file_of({tracer.take()})));
  app().use_layout("Traffic");
  workspace().requests.show_panel = "experts";
  screenshot("experts_without_step");
  ASSERT_NE(experts().shown(workspace()), nullptr);
  EXPECT_EQ(experts().shown(workspace())->measures.max_ratio, 1.5);
}

TEST_F(ExpertWindowTest, says_how_to_get_such_a_trace) {
  workspace().load(TraceStore(one_f_one_b()));
  app().use_layout("Traffic");
  workspace().requests.show_panel = "experts";
  EXPECT_NE(experts().nothing_to_show(workspace()).find("./ranklab train --preset deepseek_v3_tiny --ep 8"),
            std::string::npos);
  screenshot("experts_none");
}

}  // namespace
}  // namespace ranklab::viz
