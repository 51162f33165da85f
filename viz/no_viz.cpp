// Replaces the visualizer in builds without it: every call throws the same error.
#include "core/base/error.h"
#include "viz/app/drawing_image.h"
#include "viz/app/window.h"

namespace ranklab::viz {
namespace {

[[noreturn]] void absent() {
  throw Error(ErrorKind::kEnvironment,
              {.where = "viz",
               .what = "this build has no visualizer",
               .want = "Dear ImGui's sources, libglfw3-dev and libpng-dev when it was built",
               .fix = "./ranklab setup && ./ranklab build, with -DRANKLAB_WITH_VIZ=ON; or open the trace in Perfetto"});
}

}  // namespace

// Asked for completion and help, which need no visualizer.
std::vector<std::pair<std::string, std::string>> panel_names() { return {}; }
std::vector<std::pair<std::string, std::string>> layout_names() { return {}; }
int run_window(const VizRequest&) { absent(); }
void render_headless(const VizRequest&, const std::string&) { absent(); }
void render_html(const VizRequest&, const std::string&) { absent(); }
std::string render_text(const VizRequest&, int, bool) { absent(); }
std::string png_of(const Drawing&, Ground) { absent(); }
VizFrameTimes bench_viz_frames(size_t, int) { absent(); }

}  // namespace ranklab::viz
