// The timeline as a person uses it: keys, mouse, what a click chooses, and the critical path beside it.
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "tests/viz/window/sample_traces.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/app/layouts.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/path_panel.h"

namespace ranklab::viz {
namespace {

TEST_F(WindowTest, shows_the_totals_of_one_f_one_b) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(3);
    const BubbleReport& report = workspace().bubbles();
    IM_CHECK_STR_EQ(format_time(workspace().store(), report.range.length_ns()).c_str(), "117 units");
    IM_CHECK_STR_EQ(format_percent(report.all.bubble_of_total()).c_str(), "17.95 %");
    IM_CHECK_STR_EQ(format_percent(report.all.bubble_of_ideal()).c_str(), "21.88 %");
    IM_CHECK_GT(timeline().painter().blocks(), 512u);  // 8 ranks x 64 actions, and messages
  });
  screenshot("timeline_1f1b");
}

TEST_F(WindowTest, zooms_and_pans_with_the_keys_of_perfetto) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    Camera& camera = workspace().camera;
    const double length = camera.length_ns();
    ctx.KeyPress(ImGuiKey_W);
    IM_CHECK_LT(std::abs(camera.length_ns() - 0.8 * length), 1.0);
    const double begin = camera.begin_ns;
    ctx.KeyPress(ImGuiKey_D);
    IM_CHECK_LT(std::abs(camera.begin_ns - begin - 0.08 * 0.8 * length), 2.0);
    ctx.KeyPress(ImGuiKey_A);
    IM_CHECK_LT(std::abs(camera.begin_ns - begin), 2.0);
    ctx.KeyPress(ImGuiKey_S);
    IM_CHECK_LT(std::abs(camera.length_ns() - length), 2.0);
    // Ctrl and the wheel keep the time under the mouse where it is.
    const TimelineLayout& layout = timeline().layout();
    const ImVec2 point((layout.plot_left + layout.plot_right) / 2, layout.rows[0].top + 4);
    ctx.MouseMoveToPos(point);
    const double under = layout.time_of(ImGui::GetIO().MousePos.x);
    ctx.KeyDown(ImGuiMod_Ctrl);
    ctx.MouseWheelY(2);
    ctx.KeyUp(ImGuiMod_Ctrl);
    ctx.Yield();
    IM_CHECK_LT(camera.length_ns(), 0.9 * length);
    IM_CHECK_LT(std::abs(layout.time_of(ImGui::GetIO().MousePos.x) - under), length / 1000);
    ctx.KeyPress(ImGuiKey_Home);
    IM_CHECK_LT(std::abs(camera.length_ns() - 1.02 * 117e6), 10.0);
  });
}

TEST_F(WindowTest, finds_and_shows_an_event) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiKey_P);
    ctx.KeyCharsReplaceEnter("BW31");
    ctx.Yield(2);
    IM_CHECK(workspace().cursor.event.has_value());
    IM_CHECK_STR_EQ(workspace().store().text(*workspace().cursor.event).c_str(), "BW31");
    const double begin = static_cast<double>(workspace().store().begin_ns(*workspace().cursor.event));
    IM_CHECK_GE(begin, workspace().camera.begin_ns);
    IM_CHECK_LE(begin, workspace().camera.end_ns);
    IM_CHECK_STR_EQ(workspace().deep_link().c_str(), "step=0,t=115,sel=r0/BW31");
  });
}

TEST_F(WindowTest, chooses_a_block_by_a_click_and_an_area_by_a_drag) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(2);
    const TimelineLayout& layout = timeline().layout();
    const auto y_of = [&](size_t rank) {
      for (const RowBox& row : layout.rows)
        if (row.rank == rank && row.main) return (row.top + row.bottom) / 2;
      return 0.f;
    };
    ctx.MouseMoveToPos({layout.x_of(3.5e6), y_of(0)});
    ctx.MouseClick();
    IM_CHECK(workspace().cursor.event.has_value());
    IM_CHECK_STR_EQ(workspace().store().text(*workspace().cursor.event).c_str(), "F3");
    IM_CHECK_EQ(workspace().cursor.time_ns, 3'000'000);
    ctx.KeyPress(ImGuiKey_Period);
    IM_CHECK_STR_EQ(workspace().store().text(*workspace().cursor.event).c_str(), "F4");
    ctx.MouseMoveToPos({layout.x_of(20e6), y_of(2)});
    ctx.MouseDown();
    ctx.MouseMoveToPos({layout.x_of(60e6), y_of(4)});
    ctx.MouseUp();
    IM_CHECK(workspace().area.has_value());
    IM_CHECK_EQ(workspace().area->first_rank, 2u);
    IM_CHECK_EQ(workspace().area->last_rank, 4u);
    IM_CHECK_LT(std::abs(static_cast<double>(workspace().area->range.length_ns()) - 40e6), 0.3e6);
  });
  screenshot("selection");
}

TEST_F(WindowTest, begins_with_one_step_and_its_critical_path) {
  workspace().load(in_units(three_steps()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(2);
    const Camera& camera = workspace().camera;
    const double length = static_cast<double>(kThreeStepsLength);
    IM_CHECK_EQ(workspace().step(), 1);
    IM_CHECK_LT(std::abs(camera.length_ns() - 1.02 * length), 0.01 * length);
    IM_CHECK_LE(camera.begin_ns, length);
    IM_CHECK(workspace().show_critical_path && workspace().show_bubbles);
    // All ranks are in view.
    const TimelineLayout& layout = timeline().layout();
    IM_CHECK_EQ(layout.ranks.size(), 4u);
    // The schedules begin with the run's: 4 ranks, 8 microbatches.
    IM_CHECK_EQ(what_if().results()[0].store.ranks().size(), 4u);
  });
}

TEST_F(WindowTest, shows_eight_ranks_without_scrolling_in_every_layout) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    for (const LayoutPreset& preset : layout_presets()) {
      app().use_layout(preset.name);
      ctx.Yield(6);
      const TimelineLayout& layout = timeline().layout();
      IM_CHECK_EQ(layout.ranks.size(), 8u);
      IM_CHECK_LE(layout.bottom, ctx.GetWindowByRef("//###timeline")->Rect().Max.y);
      for (const RowBox& row : layout.rows)
        if (row.main) IM_CHECK_GE(row.bottom - row.top, 10.f);
    }
  });
}

TEST_F(WindowTest, lists_the_critical_path_by_rank_and_a_click_opens_a_stay) {
  workspace().load(in_units(generated_trace(20'000)));  // messages take time
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    app().open_panel("path");
    ctx.Yield(4);
    const std::vector<PathStay> stays = stays_of(workspace().critical_path());
    const auto several =
        std::find_if(stays.begin(), stays.end(), [](const PathStay& s) { return s.last - s.first > 1; });
    IM_CHECK(several != stays.end());
    const PathPanel& panel = dynamic_cast<PathPanel&>(*app().panel("path"));
    IM_CHECK_EQ(panel.rows(), stays.size());
    // Below the heading, in the middle of its row.
    const ImRect list = ctx.WindowInfo("//###path/segments").Window->Rect();
    const float row = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    const auto place = static_cast<float>(several - stays.begin());
    ctx.MouseMoveToPos({list.Min.x + 40, list.Min.y + row * (place + 1.5f)});
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK_EQ(panel.rows(), stays.size() + several->last - several->first);
    IM_CHECK_LE(workspace().camera.begin_ns, static_cast<double>(several->range.begin_ns));
    IM_CHECK_GE(workspace().camera.end_ns, static_cast<double>(several->range.end_ns));
  });
}

TEST_F(WindowTest, a_click_on_a_bubble_chooses_the_call_that_the_rank_waited_in) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(2);
    const std::vector<IdleInterval>& idle = workspace().bubbles_of_trace().ranks[0].idle;
    const auto wait = std::find_if(idle.begin(), idle.end(), [](const IdleInterval& i) {
      return i.event != kNoEvent && i.waits_for_rank >= 0 && i.range.length_ns() > 2'000'000;
    });
    IM_CHECK(wait != idle.end());
    const TimelineLayout& layout = timeline().layout();
    const auto row = std::find_if(layout.rows.begin(), layout.rows.end(),
                                  [](const RowBox& box) { return box.rank == 0 && box.main; });
    const double middle = static_cast<double>(wait->range.begin_ns + wait->range.end_ns) / 2;
    ctx.MouseMoveToPos({layout.x_of(middle), (row->top + row->bottom) / 2});
    ctx.MouseClick();
    IM_CHECK(workspace().cursor.event.has_value());
    IM_CHECK_EQ(workspace().cursor.event->event_index, wait->event);
  });
}

}  // namespace
}  // namespace ranklab::viz
