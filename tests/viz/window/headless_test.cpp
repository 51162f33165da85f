// Pictures without a display: size, content, the same pixels twice; SVG and text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/trace/chrome_writer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/window/sample_traces.h"
#include "viz/app/application.h"
#include "viz/app/gui_context.h"
#include "viz/app/image.h"
#include "viz/app/window.h"
#include "viz/model/palette.h"
#include "viz/panels/panel.h"

namespace ranklab::viz {
namespace {

using testing::HasSubstr;

class HeadlessTest : public testing::Test {
 protected:
  HeadlessTest() : trace_(temporary_path("headless_trace") + ".json") {
    write_chrome_trace(trace_, three_steps().ranks);
  }
  ~HeadlessTest() override { std::filesystem::remove(trace_); }

  Image picture(VizRequest request) {
    request.traces = {trace_};
    const std::string path = temporary_path("picture") + ".png";
    render_headless(request, path);
    Image image = read_png(path);
    std::filesystem::remove(path);
    return image;
  }
  std::string trace_;
};

uint32_t pixel_of(Rgba color) {
  return 0xff000000u | (color >> 8 & 255) << 16 | (color >> 16 & 255) << 8 | color >> 24;
}

ptrdiff_t count(const Image& image, Rgba color) {
  return std::count(image.rgba.begin(), image.rgba.end(), pixel_of(color));
}

TEST_F(HeadlessTest, draws_the_timeline_in_the_size_that_was_asked_for) {
  const Image image = picture({.go_to = "step=1", .panel = "timeline", .width = 1000, .height = 500});
  EXPECT_EQ(image.width, 1000);
  EXPECT_EQ(image.height, 500);
  EXPECT_GT(count(image, colour(Paint::kForward)), 4000);
  EXPECT_GT(count(image, colour(Paint::kBackward)), 8000);
}

TEST_F(HeadlessTest, blocks_are_as_long_as_their_time) {
  // BW takes twice as long as F, and there are as many: about twice the pixels (letters and gaps cost some of both).
  const Image image = picture({.go_to = "step=1", .panel = "timeline", .width = 1600, .height = 600});
  const double ratio = static_cast<double>(count(image, colour(Paint::kBackward))) /
                       static_cast<double>(count(image, colour(Paint::kForward)));
  EXPECT_NEAR(ratio, 2.0, 0.25);
}

TEST_F(HeadlessTest, the_same_request_gives_the_same_pixels) {
  const VizRequest request{.go_to = "step=1,sel=r2/F3", .layout = "Pipeline"};
  const Image first = picture(request);
  EXPECT_EQ(first.width, 1600);
  EXPECT_TRUE(first == picture(request));
  EXPECT_FALSE(first == picture({.go_to = "step=1,sel=r2/F4", .layout = "Pipeline"}));
}

TEST_F(HeadlessTest, every_panel_draws_something) {
  std::filesystem::create_directories("screenshots");
  for (const PanelRow& row : panel_rows()) {
    const Image image =
        picture({.compare = trace_, .go_to = "step=1,sel=r2/F3", .panel = row.id, .width = 1100, .height = 560});
    write_png(image, std::string("screenshots/headless_") + row.id + ".png");
    const std::set<uint32_t> colors(image.rgba.begin(), image.rgba.end());
    EXPECT_GT(colors.size(), 20u) << row.id;
  }
}

TEST(WindowSettings, remember_what_is_open) {
  GuiContext gui("", 1);
  std::string kept;
  {
    Application app;
    app.use_layout("Memory");
    app.open_panel("mesh");
    size_t size = 0;
    const char* text = ImGui::SaveIniSettingsToMemory(&size);
    kept.assign(text, size);
  }
  EXPECT_THAT(kept, HasSubstr("layout=Memory\nopen=timeline,details,curves,memory,zero,mesh\nscale=1.00"));
  Application app;
  ImGui::LoadIniSettingsFromMemory(kept.c_str(), kept.size());
  EXPECT_EQ(app.layout(), "Memory");
  EXPECT_TRUE(app.is_open("mesh"));
  EXPECT_FALSE(app.is_open("comm"));
}

TEST_F(HeadlessTest, writes_vector_graphics) {
  const std::string path = temporary_path("timeline") + ".svg";
  render_headless({.traces = {trace_}, .panel = "timeline"}, path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_THAT(text.str(), HasSubstr("<svg"));
  EXPECT_THAT(text.str(), HasSubstr(">F7<"));
  EXPECT_THROW(render_headless({.traces = {trace_}, .panel = "memory"}, path), Error);
}

TEST_F(HeadlessTest, writes_a_page_of_a_step) {
  const std::string path = temporary_path("step") + ".html";
  const auto page = [&](const std::string& go_to) {
    render_html({.traces = {trace_}, .go_to = go_to}, path);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::filesystem::remove(path);
    return text.str();
  };
  EXPECT_THAT(page(""),
              HasSubstr("\"about\":\"step 1\""));  // as the window, which does not open on the first one either
  const std::string there = page("step=2,t=5ms");
  EXPECT_THAT(there, HasSubstr("\"about\":\"step 2\""));
  EXPECT_THAT(there, HasSubstr("\"open\":5000000,"));
  EXPECT_THAT(page("step=1,sel=r2/F3"), HasSubstr("F3"));
  EXPECT_THROW(page("step=99"), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(HeadlessTest, prints_text) {
  const std::string text = render_text({.traces = {trace_}, .go_to = "step=1"}, 100, false);
  EXPECT_THAT(text, HasSubstr("27.27 %"));  // (p-1)/(m+p-1) = 3/11
}

TEST_F(HeadlessTest, refuses_what_it_does_not_know) {
  const auto message = [&](const VizRequest& request, const std::string& out) -> std::string {
    VizRequest asked = request;
    asked.traces = {trace_};
    try {
      render_headless(asked, out);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message({.panel = "tiemline"}, "x.png"), HasSubstr("did you mean 'timeline'"));
  EXPECT_THAT(message({.layout = "Nonsense"}, "x.png"), HasSubstr("Pipeline"));
  EXPECT_THAT(message({.panel = "timeline"}, "x.jpg"), HasSubstr(".png or .svg"));
  EXPECT_THAT(message({.go_to = "step=99", .panel = "timeline"}, "x.png"), HasSubstr("99"));
  EXPECT_FALSE(std::filesystem::exists("x.png"));
}

}  // namespace
}  // namespace ranklab::viz
