// `ranklab viz`: a trace in a window, as a picture rendered without a display, as a page, or as text.
#include <cstdio>
#include <memory>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_module.h"
#include "cli/common/style.h"
#include "core/base/error.h"
#include "core/base/files/output_file.h"
#include "core/base/files/path_type.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/live/live_client.h"
#include "core/trace/find_trace.h"
#include "viz/app/window.h"

namespace ranklab {
namespace {

constexpr int kLargestSide = 16'384;

struct VizOptions {
  viz::VizRequest request;
  bool headless = false, force = false;
  std::string size, out, html, format = "auto", attach;
  int width = 0;
};

// Reads "1600x900".
void read_size(const std::string& text, viz::VizRequest& request) {
  if (text.empty()) return;
  char rest = 0;
  const bool read = std::sscanf(text.c_str(), "%dx%d%c", &request.width, &request.height, &rest) == 2;
  const auto legal = [](int side) { return side >= 100 && side <= kLargestSide; };
  RANKLAB_CHECK(read && legal(request.width) && legal(request.height), ErrorKind::kInvalidArgument, .where = "--size",
                .what = "not a size of a picture", .got = quote(text), .want = "WIDTHxHEIGHT, 100 to 16384 each",
                .fix = "use --size 1600x900");
}

void print_text(const VizOptions& options) {
  const int width = options.width > 0 ? options.width : terminal_columns(100);
  std::fputs(viz::render_text(options.request, width, style_for(stdout).on()).c_str(), stdout);
}

// A page shows one file only; several must be requested one by one.
int write_page(const VizOptions& options, bool attaches) {
  const std::string also = attaches                   ? "--attach"
                           : options.headless         ? "--headless"
                           : options.format == "text" ? "--format text"
                           : !options.out.empty()     ? "-o " + options.out
                                                      : "";
  RANKLAB_CHECK(also.empty(), ErrorKind::kInvalidArgument, .where = "viz --html",
                .what = "a page cannot be written together with other output", .got = also + " with --html",
                .want = "--html FILE.html, a trace, and perhaps --goto, the position to open",
                .fix = "leave " + also + " out, or run viz twice");
  RANKLAB_CHECK(options.html.ends_with(".html"), ErrorKind::kInvalidArgument, .where = "viz --html",
                .what = "not the name of a page", .got = quote(options.html), .want = "a name that ends in .html",
                .fix = "use --html step.html");
  check_output({.path = options.html, .option = "--html", .inputs = options.request.traces, .force = options.force});
  viz::render_html(options.request, options.html);
  std::fprintf(stderr, "wrote %s\n", options.html.c_str());
  return 0;
}

int run(VizOptions& options, bool attaches) {
  read_size(options.size, options.request);
  RANKLAB_CHECK(!attaches || (!options.headless && options.format != "text"), ErrorKind::kInvalidArgument,
                .where = "viz --attach", .what = "a live run can only be shown in a window",
                .got = options.headless ? "--headless" : "--format text", .want = "a window",
                .fix = "leave --attach out and give the trace that the run wrote, or use ranklab debug");
  const std::string without = !options.html.empty()           ? "--html"
                              : options.format == "text"      ? "--format text"
                              : options.out.ends_with(".svg") ? "-o " + options.out
                                                              : "";
  RANKLAB_CHECK(options.request.parity.empty() || without.empty(), ErrorKind::kInvalidArgument, .where = "viz --parity",
                .what = "parity results are shown only in the window and in pictures of it",
                .got = "--parity with " + without, .want = "a window, or --headless -o FILE.png",
                .fix = "leave one out, or use ranklab parity --out FILE.html or FILE.svg");
  RANKLAB_CHECK(options.request.compare.empty() || without.empty(), ErrorKind::kInvalidArgument,
                .where = "viz --compare", .what = "comparisons are shown only in the window and in pictures of it",
                .got = "--compare with " + without, .want = "a window, or --headless -o FILE.png",
                .fix = "leave one out, or use ranklab trace diff");
  if (options.request.traces.empty() && !attaches && options.request.parity.empty() && is_there(find_trace("last")))
    options.request.traces = {"last"};
  if (!options.html.empty()) return write_page(options, attaches);
  if (options.format == "text") {
    print_text(options);
    return 0;
  }
  if (!options.headless) {
    RANKLAB_CHECK(options.out.empty(), ErrorKind::kInvalidArgument, .where = "viz", .what = "-o is for pictures",
                  .got = "-o " + options.out, .want = "--headless with it", .fix = "add --headless");
    if (attaches) options.request.live = attach(options.attach);
    return viz::run_window(options.request);
  }
  RANKLAB_CHECK(!options.out.empty(), ErrorKind::kInvalidArgument, .where = "viz --headless",
                .what = "no file to write", .want = "-o FILE.png, -o FILE.apng or -o FILE.svg",
                .fix = "add -o timeline.png");
  if (options.request.panel.empty() && options.request.layout.empty() && !options.request.parity.empty())
    options.request.panel = "parity";
  if (options.request.panel.empty() && options.request.layout.empty())
    options.request.panel = options.out.ends_with(".apng") ? "stage" : "timeline";
  std::vector<std::string> inputs = options.request.traces;
  inputs.push_back(options.request.compare);
  inputs.push_back(options.request.parity);
  check_output({.path = options.out, .option = "-o", .inputs = inputs, .force = options.force});
  viz::render_headless(options.request, options.out);
  std::fprintf(stderr, "wrote %s\n", options.out.c_str());
  return 0;
}

std::string names_of(const std::vector<std::pair<std::string, std::string>>& words) {
  std::vector<std::string> names;
  for (const auto& [name, about] : words) names.push_back(name);
  return join(names, ", ");
}

}  // namespace

CommandAction setup_viz(CommandLine& app) {
  auto options = std::make_shared<VizOptions>();
  viz::VizRequest& request = options->request;
  app.add_option("trace", request.traces,
                 "trace files of one run, a schedule's CSV, or last: the last run (default, if there is one)")
      ->type_name("FILE");
  app.add_option("--compare", request.compare, "second trace to compare with")->type_name("FILE");
  app.add_option(
         "--parity", request.parity,
         "result of ranklab parity --out FILE.json, for the panel parity (default: parity.json next to the trace)")
      ->type_name("FILE");
  app.add_option("--goto", request.go_to, "position to open, e.g. step=12,t=3.4ms,sel=r3/B7")->type_name("LINK");
  app.add_option("--layout", request.layout, "arrangement of panels: " + names_of(viz::layout_names()))
      ->type_name("NAME")
      ->words(viz::layout_names());
  app.add_option("--panel", request.panel,
                 "panel to show first; in a picture, the only one: " + names_of(viz::panel_names()))
      ->type_name("NAME")
      ->words(viz::panel_names());
  CommandOption* attaches =
      app.add_option("--attach", options->attach, "watch and step a run started with --viz-listen")
          ->type_name("[PATH]")
          ->expected(0, 1);
  app.add_flag("--headless", options->headless, "write a picture instead of opening a window; needs no display");
  app.add_option("-o,--out", options->out,
                 "picture to write: .png, .apng (animation of a step), or .svg (timeline or traffic matrix)");
  app.add_option("--html", options->html, "write a step as one self-contained HTML page that plays")->type_name("FILE");
  app.add_flag("--force", options->force, "let -o or --html overwrite an existing file");
  app.add_option("--frames", request.frames, "frames of a .apng, 80 ms each")->range(2, 1000);
  app.add_option("--size", options->size, "size of the window or picture (default 1600x900)")->type_name("WxH");
  app.add_option("--scale", request.scale, "display scale")->range(0.5, 4.0);
  app.add_option("--theme", request.theme, "dark or light (default: as last time, initially dark)")
      ->one_of({"dark", "light"});
  app.add_option("--format", options->format,
                 "text: print the timeline, or --panel stage, traffic, attention, experts, zero, precision or memory, "
                 "to stdout")
      ->one_of({"auto", "text"});
  app.add_option("--gpus-per-node", request.gpus_per_node, "GPUs per node (default: the trace's)")->range(1, 65536);
  app.add_option("--width", options->width, "columns of --format text")->range(40, 1000);
  app.footer(
      "Examples:\n  ranklab viz last\n  ranklab viz last --format text\n  ranklab viz last --format text --panel "
      "experts\n"
      "  ranklab viz last --headless --panel timeline --goto step=1 --size 1600x900 -o timeline.png\n"
      "  ranklab viz last --headless --layout Pipeline -o window.png\n"
      "  ranklab viz last --headless -o step.apng --size 900x560\n"
      "  ranklab viz last --html step.html --goto step=1");
  return [options, attaches] { return run(*options, attaches->count() > 0); };
}

}  // namespace ranklab

RANKLAB_MODULE_COMMAND(viz)
// For `train --viz` and `bench viz`.
extern "C" int ranklab_run_window(const ranklab::viz::VizRequest& request) { return ranklab::viz::run_window(request); }
extern "C" void ranklab_bench_viz_frames(size_t events, int frames, ranklab::viz::VizFrameTimes& times) {
  times = ranklab::viz::bench_viz_frames(events, frames);
}
