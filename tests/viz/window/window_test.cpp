// The window as a person uses it: menus, bars, layouts, themes. Every scenario checks values.
#include <GLFW/glfw3.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "core/trace/chrome_writer.h"
#include "core/trace/tracer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/window/sample_traces.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/app/layouts.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

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

// Narrower than the texts of "what costs most".
TEST_F(WindowTest, lines_end_inside_a_narrow_window) {
  workspace().load(in_units(three_steps()));
  glfwSetWindowSize(glfwGetCurrentContext(), 400, 600);
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(8);
    const ImGuiWindow* lines = ctx.GetWindowByRef("//##insights");
    IM_CHECK(lines != nullptr && !workspace().insights().empty());
    IM_CHECK_EQ(lines->Size.x, 400.f);
    IM_CHECK_LE(lines->ContentSizeIdeal.x + 2 * lines->WindowPadding.x, lines->Size.x);
  });
  screenshot("narrow_window");
}

TEST_F(WindowTest, transport_bar_lies_inside_a_narrow_window) {
  workspace().load(in_units(three_steps()));
  float one_row = 0;
  for (const int width : {1600, 800, 640, 320}) {
    glfwSetWindowSize(glfwGetCurrentContext(), width, 600);
    drive([&](ImGuiTestContext& ctx) {
      ctx.Yield(8);
      const ImGuiWindow* bar = ctx.GetWindowByRef("//##transport");
      IM_CHECK_EQ(bar->Size.x, static_cast<float>(width));
      if (width == 1600) one_row = bar->Size.y;
      IM_CHECK_EQ(bar->Size.y > one_row, width < 1600);
      IM_CHECK_LE(bar->ContentSizeIdeal.x + 2 * bar->WindowPadding.x, bar->Size.x);
      IM_CHECK_LE(bar->ContentSizeIdeal.y + 2 * bar->WindowPadding.y, bar->Size.y);
      ctx.SetRef("//##transport");
      for (const char* item : {"step_forward/##icon", "##speed", "##step", "##scope"}) IM_CHECK(ctx.ItemExists(item));
      IM_CHECK(width < 640 || ctx.ItemExists("copy"));
    });
  }
  screenshot("narrow_transport");
}

// At scale 2 its legend, its plot and its table do not share the height of three lines.
TEST_F(WindowTest, the_memory_panel_can_be_read_at_scale_2) {
  Tracer tracer(0, "a rank");
  for (int64_t i = 0; i < 20; ++i) {
    Event event;
    event.kind = EventKind::kCounter;
    event.step = 0;
    event.virtual_begin_ns = event.virtual_end_ns = 1000 * i;
    event.name = tracer.intern("memory/activations");
    event.value = 1e6 * static_cast<double>(i);
    tracer.record(event);
    event.name = tracer.intern("memory/limit");
    event.value = 8e10;
    tracer.record(event);
  }
  TraceFile file;
  file.ranks.push_back(tracer.take());
  workspace().load(TraceStore(std::move(file)));
  workspace().display_scale = 2;
  app().use_layout("Memory");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(10);
    const ImGuiWindow* panel = ctx.GetWindowByRef("//###memory");
    const float line = ImGui::GetTextLineHeightWithSpacing();
    IM_CHECK_LE(panel->ContentSizeIdeal.x + 2 * panel->WindowPadding.x, panel->Size.x);
    const ImGuiWindow* plots = ctx.WindowInfo("//###memory/plots").Window;
    IM_CHECK(plots != nullptr);
    IM_CHECK_GE(plots->Size.y, 5 * line);
  });
  screenshot("memory_at_scale_2");
  workspace().display_scale = 1;
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
    IM_CHECK_EQ(what_if().results().size(), 2u);
    const WhatIfResult& one = what_if().results()[0];
    IM_CHECK_EQ(one.makespan, 117.0);
    IM_CHECK_STR_EQ(format_percent(one.bubble_of_total).c_str(), "17.95 %");
    IM_CHECK_STR_EQ(format_percent(one.bubble_of_ideal).c_str(), "21.88 %");
    IM_CHECK_EQ(one.peak_activations, 8.0);
    IM_CHECK_EQ(what_if().results()[1].makespan, 103.0);  // zb-h1: 3m + 7
    IM_CHECK_STR_EQ(what_if().train_command(one).c_str(),
                    "./ranklab train --world-size 8 --pp 8 --num-layers 8 --mbs 1 --gbs 32 --num-microbatches 32 "
                    "--pipeline-schedule 1f1b --train-iters 3");
    ctx.ItemInputValue("//###what_if/##microbatches", 8);
    ctx.Yield(2);
    IM_CHECK_EQ(what_if().results()[0].makespan, 45.0);
    IM_CHECK_STR_EQ(format_percent(what_if().results()[0].bubble_of_total).c_str(), "46.67 %");
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

TEST_F(WindowTest, escape_leaves_what_a_key_opened) {
  workspace().load(in_units(one_f_one_b()));
  drive([&](ImGuiTestContext& ctx) {
    for (const int opens : {ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P, ImGuiMod_Ctrl | ImGuiKey_P,
                            ImGuiMod_Ctrl | ImGuiKey_O, ImGuiMod_Shift | ImGuiKey_Slash}) {
      ctx.KeyPress(opens);
      ctx.Yield(2);
      IM_CHECK(ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup));
      ctx.KeyPress(ImGuiKey_Escape);
      ctx.Yield(2);
      IM_CHECK(!ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup));
    }
    ctx.KeyPress(ImGuiKey_3);
    IM_CHECK(!workspace().visible(0));
  });
}

TEST_F(WindowTest, panels_keep_their_shares_of_a_smaller_window) {
  workspace().load(in_units(three_steps()));
  app().use_layout("Pipeline");
  std::map<std::string, ImVec2> before;
  const auto share = [](ImGuiTestContext& ctx, const std::string& panel) {
    const ImVec2 size = ctx.GetWindowByRef(panel.c_str())->Size, all = ImGui::GetMainViewport()->WorkSize;
    return ImVec2(size.x / all.x, size.y / all.y);
  };
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(8);
    for (const char* panel : {"//###timeline", "//###stage", "//###path"}) before[panel] = share(ctx, panel);
  });
  glfwSetWindowSize(glfwGetCurrentContext(), 800, 600);
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(8);
    IM_CHECK_EQ(ImGui::GetMainViewport()->Size.x, 800.0f);
    for (const auto& [panel, had] : before) {
      IM_CHECK_LT(std::fabs(share(ctx, panel).x - had.x), 0.02f);
      IM_CHECK_LT(std::fabs(share(ctx, panel).y - had.y), 0.02f);
    }
    ctx.KeyPress(ImGuiMod_Shift | ImGuiKey_Slash);  // the keys have more lines than there is room for
    ctx.Yield(3);
    const ImGuiWindow* keys = ImGui::GetCurrentContext()->OpenPopupStack.back().Window;
    IM_CHECK(keys != nullptr && keys->ScrollMax.y > 0);
    IM_CHECK_LE(keys->Pos.y + keys->Size.y, 600.0f);
  });
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
