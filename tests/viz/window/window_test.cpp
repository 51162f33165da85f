// The window as a person uses it: keys, mouse, menus. Every scenario checks values.
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/text.h"
#include "core/trace/chrome_writer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/window/sample_traces.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/app/layouts.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/time_text.h"
#include "viz/model/tables/comm_table.h"
#include "viz/model/tables/mismatch_view.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/path_panel.h"
#include "viz/panels/timeline/timeline_panel.h"
#include "viz/panels/traffic_panel.h"
#include "viz/panels/what_if_panel.h"

namespace ranklab::viz {
namespace {

TraceStore in_units(TraceFile file) {
  TraceStore store(std::move(file));
  store.set_unit_ns(kScheduleUnitNs);
  return store;
}

TimelinePanel& timeline(Application& app) { return dynamic_cast<TimelinePanel&>(*app.panel("timeline")); }
WhatIfPanel& what_if(Application& app) { return dynamic_cast<WhatIfPanel&>(*app.panel("what_if")); }

TEST_F(WindowTest, opens_a_trace_by_its_path) {
  const std::string path = temporary_path("three_steps") + ".json.gz";
  write_chrome_trace(path, three_steps().ranks);
  drive([&](ImGuiTestContext& ctx) {
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    ctx.KeyCharsReplaceEnter(path.c_str());
    ctx.Yield(3);
    IM_CHECK_EQ(workspace().store().ranks().size(), 4u);
    IM_CHECK_EQ(workspace().store().steps().size(), 3u);
    IM_CHECK_EQ(workspace().store().range().length_ns(), 3 * kThreeStepsLength);
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    ctx.KeyCharsReplaceEnter("/no/such/file.json");
    ctx.Yield(3);
    IM_CHECK_EQ(workspace().store().ranks().size(), 4u);  // the old one stays
    ctx.PopupCloseAll();
  });
  std::filesystem::remove(path);
}

TEST_F(WindowTest, shows_the_totals_of_one_f_one_b) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(3);
    const BubbleReport& report = workspace().bubbles();
    IM_CHECK_STR_EQ(format_time(workspace().store(), report.range.length_ns()).c_str(), "117 units");
    IM_CHECK_STR_EQ(format_percent(report.all.bubble_of_total()).c_str(), "17.95 %");
    IM_CHECK_STR_EQ(format_percent(report.all.bubble_of_ideal()).c_str(), "21.88 %");
    IM_CHECK_GT(timeline(app()).painter().blocks(), 512u);  // 8 ranks x 64 actions, and messages
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
    const TimelineLayout& layout = timeline(app()).layout();
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
    const TimelineLayout& layout = timeline(app()).layout();
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
    const TimelineLayout& layout = timeline(app()).layout();
    IM_CHECK_EQ(layout.ranks.size(), 4u);
    // The schedules begin with the run's: 4 ranks, 8 microbatches.
    IM_CHECK_EQ(what_if(app()).results()[0].store.ranks().size(), 4u);
  });
}

TEST_F(WindowTest, popups_of_panels_lie_on_the_screen) {
  workspace().load(in_units(three_steps()));
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    for (const char* button : {"//###what_if/presets", "//###what_if/schedules ..."}) {
      ctx.ItemClick(button);
      ctx.Yield(4);
      const ImGuiContext& g = *ctx.UiContext;
      IM_CHECK(!g.OpenPopupStack.empty() && g.OpenPopupStack.back().Window != nullptr);
      const ImRect popup = g.OpenPopupStack.back().Window->Rect();
      IM_CHECK(popup.Min.x >= 0 && popup.Min.y >= 0 && popup.Max.x <= 1600 && popup.Max.y <= 900);
      ctx.PopupCloseAll();
      ctx.Yield(2);
    }
  });
}

TEST_F(WindowTest, shows_eight_ranks_without_scrolling_in_every_layout) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    for (const LayoutPreset& preset : layout_presets()) {
      app().use_layout(preset.name);
      ctx.Yield(6);
      const TimelineLayout& layout = timeline(app()).layout();
      IM_CHECK_EQ(layout.ranks.size(), 8u);
      IM_CHECK_LE(layout.bottom, ctx.GetWindowByRef("//###timeline")->Rect().Max.y);
      for (const RowBox& row : layout.rows)
        if (row.main) IM_CHECK_GE(row.bottom - row.top, 10.f);
    }
  });
}

// Three steps of 4 stages, 8 microbatches: 24 sends down and 24 up in each.
TEST_F(WindowTest, adds_up_traffic_to_the_cursor_while_it_plays) {
  workspace().load(in_units(three_steps()));
  app().use_layout("Traffic");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    TrafficPanel& traffic = dynamic_cast<TrafficPanel&>(*app().panel("traffic"));
    IM_CHECK_EQ(traffic.matrix(workspace()).total().messages, 144);
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
    IM_CHECK_EQ(timeline(app()).layout().ranks.size(), 1u);
    IM_CHECK(workspace().visible(5) && !workspace().visible(4));
    ctx.ItemClick("$$5/rank");
    ctx.Yield(2);
    IM_CHECK_EQ(timeline(app()).layout().ranks.size(), 8u);
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

// The bars above the panels come a frame after the trace: a layout's shares are of what they leave.
TEST_F(WindowTest, gives_panels_the_shares_of_their_layout) {
  workspace().load(in_units(one_f_one_b()));
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    const float above = ctx.GetWindowByRef("//###timeline")->DockNode->Size.y;
    const float below = ctx.GetWindowByRef("//###what_if")->DockNode->Size.y;
    IM_CHECK_LT(std::abs(below / (above + below) - 0.32f), 0.02f);
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
    const TimelineLayout& layout = timeline(app()).layout();
    const auto row = std::find_if(layout.rows.begin(), layout.rows.end(),
                                  [](const RowBox& box) { return box.rank == 0 && box.main; });
    const double middle = static_cast<double>(wait->range.begin_ns + wait->range.end_ns) / 2;
    ctx.MouseMoveToPos({layout.x_of(middle), (row->top + row->bottom) / 2});
    ctx.MouseClick();
    IM_CHECK(workspace().cursor.event.has_value());
    IM_CHECK_EQ(workspace().cursor.event->event_index, wait->event);
  });
}

TEST_F(WindowTest, says_what_costs_most_and_shows_where) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().insights().size(), 1u);
    IM_CHECK_STR_EQ(workspace().insights()[0].rule.c_str(), "pipeline fill");
    ctx.ItemClick("//##insights/$$0/##line");
    IM_CHECK(workspace().cursor.event.has_value());
    ctx.SetRef("##MainMenuBar");
    ctx.MenuClick("View/What costs most, on or off");
    ctx.Yield(2);
    IM_CHECK(!workspace().show_insights);
  });
}

TEST_F(WindowTest, has_a_light_theme_and_both_can_be_read) {
  workspace().load(in_units(three_steps()));
  for (const bool light : {false, true}) {
    workspace().light_theme = light;
    screenshot(light ? "light" : "dark");
    for (const ImU32 words : {theme::kText, theme::kDim, theme::kFaint, theme::kAccent, theme::kGood, theme::kBad,
                              theme::kCritical, theme::kCursor})
      for (const ImU32 ground : {theme::kWindow, theme::kField, theme::kStripe})
        EXPECT_GE(contrast(words, ground), 4.5) << light << " " << std::hex << words << " on " << ground;
    for (size_t paint = 0; paint < kPaints; ++paint)
      EXPECT_GE(contrast(im_color(text_colour(static_cast<Paint>(paint))), im_color(colour(static_cast<Paint>(paint)))),
                3.0)
          << name(static_cast<Paint>(paint));
  }
  workspace().light_theme = false;
  screenshot("dark_again");
}

TEST_F(WindowTest, steps_by_keys_and_transport_bar) {
  workspace().load(in_units(three_steps()));
  workspace().go_to_step(0);
  drive([&](ImGuiTestContext& ctx) {
    ctx.KeyPress(ImGuiMod_Shift | ImGuiKey_RightArrow);
    IM_CHECK_EQ(workspace().cursor.time_ns, kThreeStepsLength);
    IM_CHECK_EQ(workspace().step(), 1);
    ctx.ItemClick("//##transport/step_forward/##icon");
    IM_CHECK_EQ(workspace().cursor.time_ns, 2 * kThreeStepsLength);
    ctx.ItemClick("//##transport/step_back/##icon");
    IM_CHECK_EQ(workspace().step(), 1);
    ctx.ItemClick("//##transport/event_forward/##icon");
    IM_CHECK(workspace().cursor.event.has_value());
    IM_CHECK_GT(workspace().cursor.time_ns, kThreeStepsLength);
    ctx.ItemInputValue("//##transport/##step", 2);
    IM_CHECK_EQ(workspace().step(), 2);
    ctx.ItemClick("//##transport/##link");
    ctx.KeyCharsReplaceEnter("step=1,sel=r3/BW7");
    IM_CHECK_STR_EQ(workspace().store().text(*workspace().cursor.event).c_str(), "BW7");
    IM_CHECK_EQ(workspace().step(), 1);
  });
}

TEST_F(WindowTest, tables_cover_what_is_chosen) {
  workspace().load(in_units(three_steps()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.ItemClick("//##transport/step_forward/##icon");
    ctx.SetRef("//##transport");
    ctx.ComboClick("##scope/the step");
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().bubbles().range.length_ns(), kThreeStepsLength);
    // (p-1)/(m+p-1) = 3/11
    IM_CHECK_STR_EQ(format_percent(workspace().bubbles().all.bubble_of_total()).c_str(), "27.27 %");
  });
}

TEST_F(WindowTest, plays_and_stops_at_the_end) {
  workspace().load(in_units(three_steps()));
  drive([&](ImGuiTestContext& ctx) {
    workspace().playback.speed = 100;
    ctx.KeyPress(ImGuiKey_Space);
    for (int i = 0; i < 2000 && workspace().playback.state == PlayState::kPlaying; ++i) ctx.Yield();
    IM_CHECK(workspace().playback.state == PlayState::kPaused);
    IM_CHECK_EQ(workspace().cursor.time_ns, 3 * kThreeStepsLength);
  });
}

TEST_F(WindowTest, switches_panels_and_layouts) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    IM_CHECK(!app().is_open("traffic"));
    ctx.SetRef("##MainMenuBar");
    ctx.MenuClick("View/Traffic##panel");
    ctx.Yield(3);
    IM_CHECK(app().is_open("traffic"));
    ctx.MenuClick("View/Traffic##panel");
    ctx.Yield(3);
    IM_CHECK(!app().is_open("traffic"));
    ctx.MenuClick("View/Traffic");  // the layout
    ctx.Yield(5);
    const ImGuiWindow* window = ctx.GetWindowByRef("//###traffic");
    IM_CHECK(window != nullptr && window->DockIsActive && !window->Hidden);
    IM_CHECK_STR_EQ(app().layout().c_str(), "Traffic");
  });
}

TEST_F(WindowTest, changes_a_slider_of_the_schedules) {
  app().use_layout("Pipeline");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    IM_CHECK_EQ(what_if(app()).results().size(), 2u);
    const WhatIfResult& one = what_if(app()).results()[0];
    IM_CHECK_EQ(one.makespan, 117.0);
    IM_CHECK_STR_EQ(format_percent(one.bubble_of_total).c_str(), "17.95 %");
    IM_CHECK_STR_EQ(format_percent(one.bubble_of_ideal).c_str(), "21.88 %");
    IM_CHECK_EQ(one.peak_activations, 8.0);
    IM_CHECK_EQ(what_if(app()).results()[1].makespan, 103.0);  // zb-h1: 3m + 7
    IM_CHECK_STR_EQ(what_if(app()).train_command(one).c_str(),
                    "./ranklab train --world-size 8 --pp 8 --num-layers 8 --mbs 1 --gbs 32 --num-microbatches 32 "
                    "--pipeline-schedule 1f1b --train-iters 3");
    ctx.ItemInputValue("//###what_if/##microbatches", 8);
    ctx.Yield(2);
    IM_CHECK_EQ(what_if(app()).results()[0].makespan, 45.0);
    IM_CHECK_STR_EQ(format_percent(what_if(app()).results()[0].bubble_of_total).c_str(), "46.67 %");
  });
  screenshot("schedules");
}

TEST_F(WindowTest, saves_a_picture_of_the_window) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiKey_S);
    ctx.Yield(3);
  });
  const std::string said = workspace().log_lines().back().text;
  ASSERT_TRUE(said.starts_with("saved ")) << said;
  const std::string path = said.substr(6);
  const Image image = read_png(path);
  std::filesystem::remove(path);
  EXPECT_EQ(image.width, 1600);
  EXPECT_EQ(image.height, 900);
  // The blue of F (palette.h) is on it.
  const Rgba f = colour(Paint::kForward);
  const uint32_t pixel = 0xff000000u | (f >> 8 & 255) << 16 | (f >> 16 & 255) << 8 | f >> 24;
  EXPECT_GT(std::count(image.rgba.begin(), image.rgba.end(), pixel), 1000);
}

TEST_F(WindowTest, runs_a_command_of_the_palette) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    IM_CHECK(workspace().show_critical_path);
    ctx.KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
    ctx.KeyCharsReplaceEnter("critical");
    ctx.Yield(2);
    IM_CHECK(!workspace().show_critical_path);
    ctx.KeyPress(ImGuiKey_3);
    IM_CHECK(workspace().visible(2));
    IM_CHECK(!workspace().visible(0));
    ctx.KeyPress(ImGuiKey_0);
    IM_CHECK(workspace().visible(0));
  });
  screenshot("critical_path");
}

TEST_F(WindowTest, brings_the_panel_that_was_asked_for_to_the_front_of_its_layout) {
  workspace().load(in_units(three_steps()));
  app().use_layout("Pipeline");
  workspace().requests.show_panel = "path";
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(8);
    const ImGuiWindow* window = ctx.GetWindowByRef("//###path");
    IM_CHECK(window != nullptr && window->DockIsActive && window->DockTabIsVisible);
    IM_CHECK(!ctx.GetWindowByRef("//###what_if")->DockTabIsVisible);
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

TEST_F(WindowTest, draws_every_panel_and_layout) {
  workspace().load(in_units(three_steps()));
  workspace().load_other(in_units(three_steps()));
  workspace().go_to("step=1,sel=r2/F3");
  for (const LayoutPreset& preset : layout_presets()) {
    app().use_layout(preset.name);
    const Image image = screenshot(std::string("layout_") + preset.name);
    EXPECT_EQ(image.width, 1600) << preset.name;
  }
  for (const PanelRow& row : panel_rows()) {
    app().open_panel(row.id);
    screenshot(std::string("panel_") + row.id);
    EXPECT_TRUE(app().is_open(row.id)) << row.id;
  }
  for (const LogLine& line : workspace().log_lines()) EXPECT_NE(line.level, LogLine::Level::kError) << line.text;
}

}  // namespace
}  // namespace ranklab::viz
