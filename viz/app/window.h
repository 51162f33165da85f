// What programs call of the visualizer: a window, a picture without a display, and how long frames take. Where it is
// not built, viz/no_viz.cpp answers the same calls with one error. No ImGui here. Thread rule: run_window() from the
// main thread (the window system's rule); the others from one thread at a time.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ranklab {
class LiveSource;
}

namespace ranklab::viz {

struct VizRequest {
  std::vector<std::string> traces = {};  // files of one run; "last"; none for an empty window
  std::string compare = {};              // a second trace, for the diff
  std::string go_to = {};                // a deep link: "step=12,t=3.4ms,sel=r3/B7"
  std::string layout = {};  // a preset: "Pipeline", "Traffic", "Memory", "Precision", "Lesson"; "" is the last one used
  std::string panel = {};   // a panel to bring to the front, or the only one of a picture
  std::shared_ptr<LiveSource> live = {};  // a run that is going on
  int width = 0, height = 0;              // 0: 1600 x 900
  int gpus_per_node = 0;                  // 0: as the trace says
  float scale = 1;
  std::function<void()> opened = {};  // called once, when the window is there
  std::function<bool()> closes = {};  // asked twice a second at least: true closes the window
};

// Returns when the window is closed: 0. Throws kEnvironment when there is no display.
int run_window(const VizRequest& request);

// Without a display: the panel, or with `layout` the whole window, as PNG (the same pixels on every run of a build), or
// SVG for timeline and traffic by the file's ending. Throws kInvalidArgument for what is not known.
void render_headless(const VizRequest& request, const std::string& out_path);
// For stdout: of the panels "traffic" and "experts" their tables, else the timeline. `width` in columns.
std::string render_text(const VizRequest& request, int width, bool color);

struct VizFrameTimes {
  size_t events = 0;
  int frames = 0;
  double median_ms = 0;
  double p99_ms = 0;
  double longest_ms = 0;
  size_t vertices = 0;     // of the largest frame
  size_t allocations = 0;  // by ImGui, in all these frames
};
// CPU time of a frame from NewFrame to Render, with the whole window laid out (menu, transport bar, timeline and the
// panels of the Pipeline preset), while zooming and panning over a generated trace. No drawing by GPU or software.
VizFrameTimes bench_viz_frames(size_t events = 1'000'000, int frames = 300);

}  // namespace ranklab::viz
