#include "cli/bench/bench_viz.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/common/command_module.h"
#include "cli/common/json_output.h"
#include "core/base/files/temporary_folder.h"
#include "core/base/text.h"
#include "core/trace/chrome_reader.h"
#include "core/trace/chrome_writer.h"
#include "viz/app/window.h"
#include "viz/model/critical_path.h"
#include "viz/model/level_of_detail.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/store/load_trace.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/traffic_matrix.h"

namespace ranklab {
namespace {

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Prints each time when it is measured, or keeps all of them.
class TimeTable {
 public:
  explicit TimeTable(bool json) : json_(json) {}
  void operator()(const std::string& what, double time_s) {
    seconds_[what] = time_s;
    if (json_) return;
    std::printf("  %-44s %10s\n", what.c_str(), human_ns(1e9 * time_s).c_str());
    std::fflush(stdout);
  }
  const nlohmann::ordered_json& seconds() const { return seconds_; }

 private:
  bool json_;
  nlohmann::ordered_json seconds_;
};

void bench_load(int64_t events, TimeTable& print) {
  const TemporaryFolder folder("ranklab-bench-viz", "bench viz");
  for (const char* name : {"trace.json", "trace.json.gz"}) {
    const std::string path = (folder.path() / name).string();
    {
      const TraceFile file = viz::generated_trace(events);
      print(std::string("write ") + name, seconds([&] { write_chrome_trace(path, file.ranks); }));
    }
    print(std::string("read ") + name, seconds([&] { read_chrome_trace(path); }));
    viz::TraceStore store;
    print(std::string("load ") + name + " (read and lay out)", seconds([&] { store = viz::load_trace(path); }));
    if (path.ends_with(".gz")) continue;
    print("match calls", seconds([&] { store.calls(); }));
    print("bubbles and causes", seconds([&] { find_bubbles(store, store.whole()); }));
    print("critical path and slack", seconds([&] { find_critical_path(store, store.whole()); }));
    print("traffic matrix", seconds([&] { traffic_matrix(store, store.whole()); }));
    std::vector<viz::LodBlock> blocks;
    const auto all_rows = [&] {
      blocks.clear();
      for (const viz::RankRows& rank : store.ranks()) {
        for (const viz::Row& row : rank.rows) level_of_detail(row, store.range(), 1600, blocks);
      }
    };
    all_rows();
    print("blocks of every row, 1600 pixels", seconds(all_rows));
  }
}

}  // namespace

int run_bench_viz(const BenchVizOptions& options) {
  TimeTable print(options.json);
  if (!options.json) std::printf("%lld events on 8 ranks\n", static_cast<long long>(options.events));
  bench_load(options.events, print);
  nlohmann::ordered_json data = {{"events", options.events}, {"ranks", 8}};
  if (options.frames > 0) {
    using TimeFrames = void(size_t events, int frames, viz::VizFrameTimes& times);
    prepare_module("viz");
    viz::VizFrameTimes frames;
    reinterpret_cast<TimeFrames*>(module_function("viz", "ranklab_bench_viz_frames"))(
        static_cast<size_t>(options.events), options.frames, frames);
    if (!options.json)
      std::printf("%d frames while zooming and panning, CPU time of the whole window from NewFrame to Render\n",
                  frames.frames);
    print("median", frames.median_ms * 1e-3);
    print("99th percentile", frames.p99_ms * 1e-3);
    print("longest", frames.longest_ms * 1e-3);
    if (!options.json)
      std::printf("  %-44s %10zu\n  %-44s %10zu\n", "vertices of the largest frame", frames.vertices,
                  "allocations after the warm-up", frames.allocations);
    data["frames"] = {{"count", frames.frames}, {"vertices", frames.vertices}, {"allocations", frames.allocations}};
  }
  data["seconds"] = print.seconds();
  if (options.json) std::fputs(json_result(data).c_str(), stdout);
  return 0;
}

}  // namespace ranklab
