#include <imgui.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/app/animation.h"
#include "viz/app/application.h"
#include "viz/app/gui_context.h"
#include "viz/app/software_renderer.h"
#include "viz/app/window.h"
#include "viz/html/stage_page.h"
#include "viz/model/run/run_end.h"
#include "viz/model/run/run_facts.h"
#include "viz/model/stage/script.h"
#include "viz/model/store/deep_link.h"
#include "viz/model/store/load_trace.h"
#include "viz/model/store/time_text.h"
#include "viz/model/svg.h"
#include "viz/model/tables/attention_table.h"
#include "viz/model/tables/expert_load.h"
#include "viz/model/tables/memory_table.h"
#include "viz/model/tables/precision_table.h"
#include "viz/model/tables/traffic_text.h"
#include "viz/model/tables/zero_table.h"
#include "viz/model/text_timeline.h"

namespace ranklab::viz {
namespace {

constexpr int kWidth = 1600, kHeight = 900;
// Docking and tables settle during the first frames; a layout is applied only when the bars have their final height.
constexpr int kFrames = 6, kMostFrames = 30;

// Draws the window, or one of its panels, as it would be shown.
class Painter {
 public:
  explicit Painter(const VizRequest& request) : request_(request), gui_("", request.scale) {
    app_.start(request);
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(request.width > 0 ? request.width : kWidth),
                      static_cast<float>(request.height > 0 ? request.height : kHeight)};
    io.DeltaTime = 1.0f / 60;
    int frames = 1;
    for (; frames < kMostFrames && app_.arranges(); ++frames) frame(nullptr);
    for (; frames < kFrames; ++frames) frame(nullptr);
  }

  Workspace& workspace() { return app_.workspace(); }
  Image paint() {
    Image image;
    frame(&image);
    return image;
  }

 private:
  void frame(Image* image) {
    ImGui::NewFrame();
    if (request_.panel.empty() || !request_.layout.empty()) {
      app_.frame(0);
    } else {
      app_.frame_of_panel(request_.panel);
    }
    ImGui::Render();
    render_software(*ImGui::GetDrawData(), image, ImGui::GetColorU32(ImGuiCol_DockingEmptyBg));
  }

  const VizRequest& request_;
  GuiContext gui_;
  SoftwareRenderer renderer_;
  Application app_;
};

// Whether a link names a moment for the picture, and not only a step.
bool names_a_moment(const VizRequest& request, const TraceStore& store) {
  if (request.go_to.empty()) return false;
  const DeepLink link = parse_deep_link(request.go_to, store.unit_ns());
  return link.time_ns || !link.selection.empty();
}

void picture(const VizRequest& request, const std::string& out_path) {
  Painter painter(request);
  Workspace& workspace = painter.workspace();
  const StageScript& script = workspace.stage();
  if (!script.empty() && !names_a_moment(request, workspace.store())) workspace.set_time(telling_moment(script));
  write_png(painter.paint(), out_path);
}

// Plays the cursor's step from its begin to its end, and shows the last moment a little longer.
void animation(const VizRequest& request, const std::string& out_path) {
  constexpr int kMilliseconds = 80, kHeld = 12;
  Painter painter(request);
  const StageScript& script = painter.workspace().stage();
  const TimeRange range = script.window.range;
  RANKLAB_CHECK(!script.empty(), ErrorKind::kInvalidArgument, .where = "viz --headless",
                .what = "the trace has nothing to play", .want = "events with a duration",
                .fix = "ranklab train --train-iters 3, then the same again");
  Animation animation(kMilliseconds);
  const int frames = std::max(request.frames, 2);
  for (int i = 0; i < frames + kHeld; ++i) {
    const int64_t at = range.length_ns() / (frames - 1) * std::min(i, frames - 1);
    painter.workspace().cursor.event.reset();
    painter.workspace().set_time(std::min(range.begin_ns + at, range.end_ns - 1));
    animation.add(painter.paint());
  }
  write_text_file(animation.png(), out_path);
}

TraceStore store_of(const VizRequest& request) {
  RANKLAB_CHECK(!request.traces.empty(), ErrorKind::kInvalidArgument, .where = "viz", .what = "no trace is given",
                .want = "a file, or last", .fix = "ranklab viz last");
  TraceStore store = request.traces.size() == 1 ? load_trace(request.traces[0]) : load_traces(request.traces);
  if (request.gpus_per_node > 0) store.set_gpus_per_node(request.gpus_per_node);
  return store;
}

// The time window that a deep link requests: its step, or else everything.
Window window_of(const TraceStore& store, const std::string& go_to) {
  if (go_to.empty()) return store.whole();
  return store.step_window(resolve(store, parse_deep_link(go_to, store.unit_ns())).step).value_or(store.whole());
}

// The step that a link names, or else the one that the window opens on, because many steps at once would be too fine to
// see.
Window step_of(const TraceStore& store, const std::string& go_to) {
  if (!go_to.empty()) return window_of(store, go_to);
  return shown_window(store);
}

std::string traffic_tables(const TraceStore& store, const Window& window) {
  const TrafficMatrix matrix = traffic_matrix(store, window);
  return "logical bytes\n" + matrix_text(matrix, TrafficLayer::kLogical) + "\n" +
         flows_text(traffic_flows(store, window, {.gpus_per_node = store.gpus_per_node()}), store.gpus_per_node());
}

void drawing(const VizRequest& request, const std::string& out_path) {
  const TraceStore store = store_of(request);
  if (request.panel == "timeline" || request.panel.empty()) {
    const TimeRange range = step_of(store, request.go_to).range;
    write_text_file(timeline_svg(store, {.range = range, .width = request.width > 0 ? request.width : 1200}), out_path);
  } else if (request.panel == "traffic") {
    write_text_file(matrix_svg(traffic_matrix(store, {window_of(store, request.go_to).range, -1}),
                               TrafficLayer::kLogical, store.source()),
                    out_path);
  } else {
    throw Error(ErrorKind::kInvalidArgument, {.where = "viz --headless",
                                              .what = "only the timeline and the traffic matrix are drawn as SVG",
                                              .got = "--panel " + request.panel,
                                              .want = "timeline or traffic",
                                              .fix = "write a .png"});
  }
}

}  // namespace

void render_headless(const VizRequest& request, const std::string& out_path) {
  if (out_path.ends_with(".svg")) return drawing(request, out_path);
  if (out_path.ends_with(".apng")) return animation(request, out_path);
  RANKLAB_CHECK(out_path.ends_with(".png"), ErrorKind::kInvalidArgument, .where = "viz --headless",
                .what = "a picture is a PNG, an animated PNG or an SVG", .got = quote(out_path),
                .want = "a name that ends in .png, .apng or .svg", .fix = "use -o timeline.png");
  picture(request, out_path);
}

namespace {

struct TextPlace {
  std::string go_to;
  int width = 0;
  bool color = false;
};

std::string timeline_text(const TraceStore& store, const Window& /*window*/, const TextPlace& place) {
  const auto [range, step] = step_of(store, place.go_to);
  const std::string which =
      place.go_to.empty() && store.steps().size() > 1
          ? "step " + std::to_string(step) + ", " + place_text(store, step) + " (another: --goto step=N)\n"
          : "";
  return which + text_timeline(store, {.range = range, .width = place.width, .colour = place.color}) + "\n" +
         text_totals(store, {range, -1});
}

// The table of the last sampled step, unless another one is requested.
std::string precision_of(const TraceStore& store, const Window& window) {
  const PrecisionTable table = precision_table(store);
  return precision_text(table, window.step < 0 && !table.empty() ? table.steps.back() : window.step);
}

struct TextPanel {
  std::string_view id;
  std::string (*text)(const TraceStore&, const Window&, const TextPlace&);
};
using Store = TraceStore;
using Place = TextPlace;
constexpr TextPanel kTextPanels[] = {
    {"timeline", timeline_text},
    {"stage",
     [](const Store& s, const Window&, const Place& p) { return stage_text(s, stage_script(s, step_of(s, p.go_to))); }},
    {"traffic", [](const Store& s, const Window& w, const Place&) { return traffic_tables(s, w); }},
    {"attention",
     [](const Store& s, const Window& w, const Place&) { return attention_text(s, attention_table(s, w)); }},
    {"experts", [](const Store& s, const Window& w, const Place&) { return expert_text(expert_table(s, w)); }},
    {"memory", [](const Store& s, const Window& w, const Place&) { return memory_text(memory_table(s, w)); }},
    {"zero", [](const Store& s, const Window& w, const Place&) { return zero_text(s, zero_table(s, w.step)); }},
    {"precision", [](const Store& s, const Window& w, const Place&) { return precision_of(s, w); }},
};

const TextPanel& text_panel(const std::string& id) {
  std::vector<std::string> known;
  for (const TextPanel& panel : kTextPanels) {
    if (id.empty() || panel.id == id) return panel;
    known.emplace_back(panel.id);
  }
  throw Error(ErrorKind::kInvalidArgument, {.where = "viz --format text",
                                            .what = "that panel is not printed as text",
                                            .got = "--panel " + id,
                                            .want = join(known, ", "),
                                            .fix = "choose one of these, or draw it: --headless -o FILE.png"});
}

}  // namespace

void render_html(const VizRequest& request, const std::string& out_path) {
  const TraceStore store = store_of(request);
  std::optional<int64_t> open_ns;
  if (names_a_moment(request, store)) open_ns = resolve(store, parse_deep_link(request.go_to, store.unit_ns())).time_ns;
  write_text_file(stage_page(store, stage_script(store, step_of(store, request.go_to)), open_ns), out_path);
}

std::string render_text(const VizRequest& request, int width, bool color) {
  const TextPanel& panel = text_panel(request.panel);
  const TraceStore store = store_of(request);
  const Window window = window_of(store, request.go_to);
  std::string out;
  if (const RunEnd end = run_end_beside(store); !end.words.empty()) out += end.words + "\n";
  if (!store.warning().empty()) out += store.warning() + "\n";
  return out + panel.text(store, window, {request.go_to, width, color});
}

}  // namespace ranklab::viz
