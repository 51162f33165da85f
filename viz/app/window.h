// The visualizer's interface for programs: a window, a picture without a display, and frame times. In builds without
// it, viz/no_viz.cpp implements the same functions and throws an error. This header does not need ImGui. Thread rule:
// run_window() from the main thread (the window system's rule); the others from one thread at a time.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ranklab {
class LiveSource;
}

namespace ranklab::viz {

struct VizRequest {
  std::vector<std::string> traces = {};  // the files of one run, or "last"; none for an empty window
  std::string compare = {};              // a second trace, for the diff
  std::string parity = {};  // what `ranklab parity --out FILE.json` wrote; "": parity.json beside the trace
  std::string go_to = {};   // a deep link: "step=12,t=3.4ms,sel=r3/B7"
  std::string layout = {};  // a preset of layouts.cpp: "Pipeline"; "" is the last one used
  std::string panel = {};   // a panel to bring to the front, or the only one in a picture
  std::shared_ptr<LiveSource> live = {};  // a run that is still running
  int width = 0, height = 0;              // 0: 1600 x 900
  int gpus_per_node = 0;                  // 0: from the trace
  int frames = 100;                       // of an animation, at 80 ms each
  float scale = 1;
  std::string theme = {};             // "dark" or "light"; "" is the last one used
  std::function<void()> opened = {};  // called once, when the window exists
  std::function<bool()> closes = {};  // polled at least twice a second: true closes the window
};

// The names that `panel` and `layout` accept, each with its description; empty in a build without the visualizer.
std::vector<std::pair<std::string, std::string>> panel_names();
std::vector<std::pair<std::string, std::string>> layout_names();

// Returns 0 when the window is closed. Throws kEnvironment if there is no display.
int run_window(const VizRequest& request);

// Draws the panel, or with `layout` the whole window, without a display. The file's extension selects the format: PNG
// (the same pixels in every run of a build), APNG, which plays the cursor's step, or SVG for timeline and traffic.
// Throws kInvalidArgument for unknown names.
void render_headless(const VizRequest& request, const std::string& out_path);
// Writes a step as one HTML file that plays without a network: the step of go_to, else the second of the trace, as in
// the window. If go_to names a time or an event, the page opens there. Throws kInvalidArgument if there is nothing to
// play.
void render_html(const VizRequest& request, const std::string& out_path);
// Text for stdout: for the panel "stage" the narrator's lines, for panels that show tables these tables, else the
// timeline. `width` in columns.
std::string render_text(const VizRequest& request, int width, bool color);

struct VizFrameTimes {
  size_t events = 0;
  int frames = 0;
  double median_ms = 0;
  double p99_ms = 0;
  double longest_ms = 0;
  size_t vertices = 0;     // of the largest frame
  size_t allocations = 0;  // by ImGui, in all of these frames
};
// CPU time of a frame from NewFrame to Render, with the whole window laid out (menu, transport bar, timeline and the
// panels of the Pipeline preset), while zooming and panning over a generated trace. Excludes rasterization.
VizFrameTimes bench_viz_frames(size_t events = 1'000'000, int frames = 300);

}  // namespace ranklab::viz
