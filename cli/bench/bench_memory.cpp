#include "cli/bench/bench_memory.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/bench/bench_process.h"
#include "cli/common/json_output.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

struct Layout {
  const char* name;
  const char* flags;
};
constexpr std::array<Layout, 8> kLayouts = {{
    {"one rank", "--world-size 1"},
    {"dp 2", "--world-size 2 --dp 2"},
    {"tp 2", "--world-size 2 --tp 2"},
    {"pp 2", "--world-size 2 --pp 2"},
    {"dp 4, ZeRO 3", "--world-size 4 --dp 4 --zero-stage 3"},
    {"dp 2 x tp 2 x pp 2", "--world-size 8 --dp 2 --tp 2 --pp 2"},
    {"cp 4, documents", "--world-size 4 --cp 4 --reset-attention-mask --eod-token 32"},
    {"ep 4", "--world-size 4 --ep 4 --num-experts 4 --moe-router-topk 2"},
}};

// Many small tensors, because they make leaks of a step most visible.
constexpr const char* kModel =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --global-batch-size 8 --gemm mkl";

}  // namespace

int run_bench_memory(const BenchMemoryOptions& o) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!o.json) {
    std::printf("%-20s %12s %12s %9s %12s\n", "layout", strprintf("MB at %d", o.warmup).c_str(),
                strprintf("MB at %d", o.warmup + o.steps).c_str(), "growth", "KB per step");
  }
  for (const Layout& layout : kLayouts) {
    const nlohmann::json run = run_bench_process(
        "bench memory", strprintf("%s bench step %s %s --warmup %d --timed-steps %d", shell_quote(o.program).c_str(),
                                  kModel, layout.flags, o.warmup, o.steps));
    const double before = run.at("warm_own_mb"), after = run.at("last_own_mb");
    const double kb_a_step = (after - before) * 1024 / o.steps;
    rows.push_back({{"layout", layout.name}, {"warm_mb", before}, {"last_mb", after}, {"kb_a_step", kb_a_step}});
    if (o.json) continue;
    std::printf("%-20s %12.1f %12.1f %+8.1f%% %12.2f\n", layout.name, before, after, 100 * (after / before - 1),
                kb_a_step);
    std::fflush(stdout);
  }
  if (o.json) std::fputs(json_result({{"layouts", rows}}).c_str(), stdout);
  return 0;
}

}  // namespace ranklab
