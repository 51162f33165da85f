// Pictures without a display: size, content, the same pixels twice; SVG and text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/trace/chrome_writer.h"
#include "core/trace/tracer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/window/sample_traces.h"
#include "viz/app/application.h"
#include "viz/app/drawing_image.h"
#include "viz/app/gui_context.h"
#include "viz/app/image.h"
#include "viz/app/software_renderer.h"
#include "viz/app/window.h"
#include "viz/model/svg/palette.h"
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

// Its bars alone fill a window that is as small as that, or as large on a display as that.
TEST_F(HeadlessTest, draws_a_window_without_room_for_panels) {
  const Image small = picture({.layout = "Pipeline", .width = 200, .height = 60});
  EXPECT_EQ(small.width, 200);
  EXPECT_EQ(picture({.layout = "Memory", .width = 1280, .height = 200, .scale = 4}).height, 200);
}

// Where the bars above it need several lines: Schedules is in front below, and not the last panel, Log.
TEST_F(HeadlessTest, draws_a_narrow_window_as_its_layout_wants_it) {
  Image image = picture({.layout = "Pipeline", .width = 400, .height = 1800});
  image.rgba.erase(image.rgba.begin(), image.rgba.begin() + static_cast<ptrdiff_t>(400) * 1400);
  EXPECT_GT(count(image, colour(Paint::kForward)), 100);
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

// After a window was closed and opened again: its layout, its theme, and what is in front of each place.
TEST(WindowSettings, are_those_of_the_window_that_was_closed) {
  const std::string path = temporary_path("window") + ".ini";
  for (const bool again : {false, true}) {
    GuiContext gui(path, 1);
    SoftwareRenderer renderer;
    Application app;
    ImGui::GetIO().DisplaySize = {1600, 900};
    app.start({.layout = again ? "" : "Memory", .theme = again ? "" : "light"});
    for (int i = 0; i < 10; ++i) {
      ImGui::NewFrame();
      app.frame(0);
      ImGui::Render();
    }
    const auto in_front = [](const char* panel) { return ImGui::FindWindowByName(panel)->DockTabIsVisible; };
    EXPECT_EQ(app.layout(), "Memory") << again;
    EXPECT_TRUE(app.workspace().light_theme) << again;
    EXPECT_TRUE(in_front("###memory")) << again;
    EXPECT_FALSE(in_front("###zero")) << again;
    EXPECT_TRUE(in_front("###curves")) << again;
  }
  std::filesystem::remove(path);
}

TEST_F(HeadlessTest, writes_vector_graphics) {
  const std::string path = temporary_path("timeline") + ".svg";
  render_headless({.traces = {trace_}, .panel = "timeline"}, path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  size_t blocks = 0, at = 0;
  while ((at = text.str().find(">F7<", at) + 1) != 0) ++blocks;
  EXPECT_EQ(blocks, 8U) << "a block and its title of each rank: one step, as in the window";
  EXPECT_THROW(render_headless({.traces = {trace_}, .panel = "memory"}, path), Error);
}

// Many ranks have cells too narrow for numbers, but sums beside them.
TEST(HeadlessTraffic, SumsOfManyRanksAreDrawn) {
  constexpr int kRanks = 40;
  TraceFile file;
  file.world_size = kRanks;
  for (int rank = 0; rank < kRanks; ++rank) {
    Tracer tracer(rank, "");
    std::vector<int> all(kRanks);
    std::iota(all.begin(), all.end(), 0);
    tracer.set_group(Axis::kDp, all);
    Event event;
    event.kind = EventKind::kCollective;
    event.axis = Axis::kDp;
    event.verb = Verb::kAllReduce;
    event.name = tracer.intern("all_reduce");
    event.step = 0;
    event.sequence = 0;
    event.virtual_end_ns = 1000;
    event.logical_bytes = event.algorithm_bytes = event.wire_bytes = 5 << 20;
    tracer.record(event);
    file.ranks.push_back(tracer.take());
  }
  const std::string trace = temporary_path("many_ranks") + ".json", path = temporary_path("picture") + ".png";
  write_chrome_trace(trace, file.ranks);
  render_headless({.traces = {trace}, .panel = "traffic", .width = 900, .height = 700, .theme = "dark"}, path);
  const Image image = read_png(path);
  std::filesystem::remove(trace);
  std::filesystem::remove(path);
  const auto words_in = [&](int from_x, int from_y) {
    ptrdiff_t bright = 0;
    for (int y = from_y; y < image.height; ++y)
      for (int x = from_x; x < image.width; ++x) {
        const uint32_t pixel =
            image.rgba[static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x)];
        bright += (pixel & 255) > 190 && (pixel >> 8 & 255) > 190 && (pixel >> 16 & 255) > 190;
      }
    return bright;
  };
  EXPECT_GT(words_in(image.width - 78, 60), 500) << "what each sent";
  EXPECT_GT(words_in(0, image.height - 110), 200) << "what each got";
}

// A run that failed, and the same one as if it had not.
TEST(HeadlessRun, AFailureIsSaidInCurvesInBarsAndInText) {
  const std::string folder = temporary_path("failed_run"), trace = folder + "/trace.json.gz";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  write_chrome_trace(trace, three_steps().ranks);
  std::ofstream(folder + "/metrics.jsonl") << R"({"step":0,"loss":2})"
                                           << "\n"
                                           << R"({"step":1,"loss":1})"
                                           << "\n";
  const auto bad_pixels = [&](const VizRequest& request) {
    VizRequest asked = request;
    asked.traces = {trace};
    asked.theme = "dark";
    const std::string path = temporary_path("picture") + ".png";
    render_headless(asked, path);
    const Image image = read_png(path);
    std::filesystem::remove(path);
    return std::ranges::count_if(image.rgba, [](uint32_t pixel) {  // red, also where it is blended with the ground
      const uint32_t red = pixel & 255, green = pixel >> 8 & 255;
      return red > 120 && red > 3 * green / 2;
    });
  };
  const VizRequest curves{.panel = "curves", .width = 700, .height = 400}, window{.layout = "Pipeline"};
  const ptrdiff_t before = bad_pixels(window);
  EXPECT_EQ(bad_pixels(curves), 0);
  std::ofstream(folder + "/run.json")
      << R"({"settings": [], "outcome": {"steps_done": 2, "error": "[step 2] training diverged", "failed_step": 2}})";
  EXPECT_GT(bad_pixels(curves), 100) << "a line where it failed";
  EXPECT_GT(bad_pixels(window), before + 100) << "words";
  EXPECT_THAT(render_text({.traces = {trace}}, 100, false),
              testing::StartsWith("the run ended with an error: [step 2] training diverged\n"));
  std::filesystem::remove_all(folder);
}

// What a browser does: the first frame is the picture, each further one is drawn over it. Independent of the writer.
std::vector<Image> frames_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string file = text.str();
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<uint8_t>(file[at + i]);
    return value;
  };
  std::vector<Image> frames{read_png(path)};
  const std::string header = file.substr(0, 8 + 25);  // with IHDR, whose size is at 16
  uint32_t sequence = 0, width = 0, height = 0, x = 0, y = 0, told = 0;
  for (size_t at = 8; at + 12 <= file.size(); at += number(at) + 12) {
    const std::string type = file.substr(at + 4, 4);
    if (type == "acTL") told = number(at + 8);
    if (type != "fcTL" && type != "fdAT") continue;
    EXPECT_EQ(number(at + 8), sequence++);
    if (type == "fcTL") {
      width = number(at + 12), height = number(at + 16), x = number(at + 20), y = number(at + 24);
      continue;
    }
    // The same pixels as a PNG of their own.
    std::string part = file.substr(at + 12, number(at) - 4), alone = header;
    const auto put = [&](size_t place, uint32_t value) {
      for (size_t i = 0; i < 4; ++i) alone[place + i] = static_cast<char>(value >> (24 - 8 * i) & 255U);
    };
    const auto checked = [&](const std::string& name, const std::string& data) {
      std::string out(4, 0);
      for (size_t i = 0; i < 4; ++i) out[i] = static_cast<char>(data.size() >> (24 - 8 * i) & 255U);
      out += name + data;
      const auto crc = crc32(0, reinterpret_cast<const Bytef*>(out.data()) + 4, static_cast<uInt>(out.size() - 4));
      for (size_t i = 0; i < 4; ++i) out += static_cast<char>(crc >> (24 - 8 * i) & 255U);
      return out;
    };
    put(16, width), put(20, height);
    alone = alone.substr(0, 8) + checked("IHDR", alone.substr(16, 13)) + checked("IDAT", part) + checked("IEND", "");
    const std::string one = temporary_path("frame") + ".png";
    std::ofstream(one, std::ios::binary) << alone;
    const Image over = read_png(one);
    std::filesystem::remove(one);
    Image next = frames.back();
    for (uint32_t row = 0; row < height; ++row)
      for (uint32_t column = 0; column < width; ++column)
        if (over.rgba[size_t{row} * width + column] >> 24U != 0)
          next.rgba[size_t{y + row} * static_cast<size_t>(next.width) + x + column] =
              over.rgba[size_t{row} * width + column];
    frames.push_back(std::move(next));
  }
  EXPECT_EQ(told, frames.size());
  return frames;
}

// Pixels whose colours differ by more than rounding.
int far_pixels(const Image& a, const Image& b) {
  int far = 0;
  for (size_t i = 0; i < a.rgba.size() && i < b.rgba.size(); ++i) {
    for (int shift = 0; shift < 24; shift += 8) {
      const int difference = static_cast<int>(a.rgba[i] >> shift & 255) - static_cast<int>(b.rgba[i] >> shift & 255);
      if (std::abs(difference) <= 16) continue;
      ++far;
      break;
    }
  }
  return far;
}

TEST_F(HeadlessTest, an_animation_is_its_pictures) {
  const std::string path = temporary_path("step") + ".apng";
  const VizRequest request{.go_to = "step=1", .panel = "stage", .width = 640, .height = 400, .frames = 4};
  VizRequest animated = request;
  animated.traces = {trace_};
  render_headless(animated, path);
  const std::vector<Image> frames = frames_of(path);
  std::filesystem::remove(path);
  ASSERT_GE(frames.size(), 4u);
  EXPECT_FALSE(frames[0] == frames[1]);
  // A third of the step of 33 units, and its last moment.
  VizRequest still = request;
  still.go_to = "step=1,t=11ms";
  // Glyphs may lie elsewhere in the texture, which rounds a few pixels differently.
  EXPECT_LT(far_pixels(frames[1], picture(still)), 20);
  EXPECT_GT(far_pixels(frames[0], frames[1]), 2000);
  EXPECT_TRUE(frames.back() == frames[3]);
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

TEST_F(HeadlessTest, tells_a_step_line_by_line) {
  const std::string text = render_text({.traces = {trace_}, .panel = "stage"}, 100, false);
  EXPECT_THAT(text, testing::StartsWith("step 1\n"));
  EXPECT_THAT(text, HasSubstr("        0 ns  r0 runs F0: forward of microbatch 0\n"));
  EXPECT_THAT(text, HasSubstr("     4.00 ms  r0 waits 6.00 ms: BW0 is still on r1\n"));
  EXPECT_THAT(render_text({.traces = {trace_}, .go_to = "step=2", .panel = "stage"}, 100, false),
              testing::StartsWith("step 2\n"));
}

TEST_F(HeadlessTest, prints_text) {
  const std::string text = render_text({.traces = {trace_}, .go_to = "step=1"}, 100, false);
  EXPECT_THAT(text, HasSubstr("27.27 %"));  // (p-1)/(m+p-1) = 3/11
  EXPECT_EQ(render_text({.traces = {trace_}}, 100, false), "step 1, 2 of 3 (another: --goto step=N)\n" + text);
}

TEST(DrawingImage, has_two_pixels_to_one_of_its_svg) {
  Drawing drawing;
  drawing.width = 100, drawing.height = 60;
  drawing.rect(10, 20, 30, 15, 0x206AD0FF);
  drawing.text(50, 40, 12, kInk, "words");
  const std::string png = png_of(drawing, Ground::kDark), path = temporary_path("drawing") + ".png";
  EXPECT_EQ(png, png_of(drawing, Ground::kDark));
  EXPECT_NE(png, png_of(drawing, Ground::kLight));
  write_text_file(png, path);
  const Image image = read_png(path);
  std::filesystem::remove(path);
  EXPECT_EQ(image.width, 200);
  EXPECT_EQ(image.height, 120);
  EXPECT_EQ(count(image, 0x206AD0FF), 60 * 30);
  EXPECT_EQ(image.rgba[0], pixel_of(colour(Ground::kDark)));
  EXPECT_GT(count(image, 0xDEE3EAFF), 20) << "of the letters";
  drawing.height = 9000;
  EXPECT_THROW(png_of(drawing, Ground::kDark), Error);
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
  EXPECT_THAT(message({.panel = "timeline"}, "x.jpg"), HasSubstr(".png, .apng or .svg"));
  EXPECT_THAT(message({.go_to = "step=99", .panel = "timeline"}, "x.png"), HasSubstr("99"));
  EXPECT_FALSE(std::filesystem::exists("x.png"));
}

}  // namespace
}  // namespace ranklab::viz
