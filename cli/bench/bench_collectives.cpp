#include "cli/bench/bench_collectives.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "backends/cpu_sim/match_table.h"
#include "backends/cpu_sim/thread_world.h"
#include "cli/common/json_output.h"
#include "core/base/text.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using Clock = std::chrono::steady_clock;

struct Op {
  const char* name;
  // `tensor` holds the bytes of the full tensor; `part` holds 1/ranks of it.
  void (*call)(Communicator& comm, const at::Tensor& tensor, const at::Tensor& part);
  double (*bus_factor)(double ranks);
};

double ring_share(double n) { return (n - 1) / n; }

constexpr std::array<Op, 5> kOps = {{
    {"all_reduce", [](Communicator& c, const at::Tensor& x, const at::Tensor&) { c.all_reduce(x); },
     [](double n) { return 2 * ring_share(n); }},
    {"reduce_scatter", [](Communicator& c, const at::Tensor& x, const at::Tensor&) { c.reduce_scatter(x); },
     ring_share},
    {"all_gather", [](Communicator& c, const at::Tensor&, const at::Tensor& part) { c.all_gather(part); }, ring_share},
    {"all_to_all", [](Communicator& c, const at::Tensor& x, const at::Tensor&) { c.all_to_all(x); }, ring_share},
    {"broadcast", [](Communicator& c, const at::Tensor& x, const at::Tensor&) { c.broadcast(x, 0); },
     [](double) { return 1.0; }},
}};

struct PathRow {
  const char* name;
  Collectives collectives;
  Transport transport;
};
constexpr std::array<PathRow, 3> kPaths = {{{"direct", Collectives::kDirect, Transport::kInproc},
                                            {"gloo-inproc", Collectives::kGloo, Transport::kInproc},
                                            {"gloo-tcp", Collectives::kGloo, Transport::kTcp}}};

struct Timing {
  double median_us = 0;
  double min_us = 0;
};

Timing summarize(std::vector<double>& us) {
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us.front()};
}

int iterations_of(const BenchCollectivesOptions& options, int64_t bytes) {
  if (options.iterations > 0) return options.iterations;
  return bytes <= 64 << 10 ? 100 : bytes <= 1 << 20 ? 20 : 7;
}

// Every rank makes the same calls without pauses; rank 0's times are used.
Timing run_path(const BenchCollectivesOptions& options, const PathRow& path, const Op& op, int64_t bytes) {
  Timing timing;
  const auto world =
      make_thread_world({.size = options.ranks, .collectives = path.collectives, .transport = path.transport});
  world->run([&](Endpoint& endpoint) {
    Group group{.axis = Axis::kWorld,
                .global_ranks = std::vector<int>(static_cast<size_t>(options.ranks)),
                .group_rank = endpoint.global_rank()};
    std::iota(group.global_ranks.begin(), group.global_ranks.end(), 0);
    const CommunicatorPtr comm = endpoint.communicator(group);
    const int64_t per_rank = std::max<int64_t>(1, bytes / 4 / options.ranks);
    const at::Tensor part = at::ones({per_rank});
    const at::Tensor tensor = at::zeros({per_rank * options.ranks});
    for (int i = 0; i < 2; ++i) op.call(*comm, tensor, part);
    std::vector<double> us;
    for (int i = 0; i < iterations_of(options, bytes); ++i) {
      const auto begin = Clock::now();
      op.call(*comm, tensor, part);
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    if (endpoint.global_rank() == 0) timing = summarize(us);
  });
  return timing;
}

std::string us_text(double us) { return us < 100 ? strprintf("%.1f", us) : strprintf("%.0f", us); }

using Timings = std::array<Timing, kPaths.size()>;

Timings run_paths(const BenchCollectivesOptions& options, const Op& op, int64_t bytes) {
  Timings of_path;
  for (size_t p = 0; p < kPaths.size(); ++p) of_path[p] = run_path(options, kPaths[p], op, bytes);
  return of_path;
}

nlohmann::ordered_json row_json(const BenchCollectivesOptions& options, const Op& op, int64_t bytes,
                                const Timings& of_path) {
  nlohmann::ordered_json paths;
  for (size_t p = 0; p < kPaths.size(); ++p) {
    const double gb_per_s = static_cast<double>(bytes) / of_path[p].median_us / 1e3;
    paths[kPaths[p].name] = {{"median_us", of_path[p].median_us},
                             {"min_us", of_path[p].min_us},
                             {"algorithm_gb_per_s", gb_per_s},
                             {"bus_gb_per_s", gb_per_s * op.bus_factor(options.ranks)}};
  }
  return {{"verb", op.name}, {"bytes", bytes}, {"paths", paths}};
}

void print_row(const BenchCollectivesOptions& options, const Op& op, int64_t bytes, const Timings& of_path) {
  std::printf("%-15s %10lld", op.name, static_cast<long long>(bytes));
  for (const Timing& t : of_path) {
    const double algorithm_gb_s = static_cast<double>(bytes) / t.median_us / 1e3;
    std::printf("  | %9s %9s %7.2f %7.2f", us_text(t.median_us).c_str(), us_text(t.min_us).c_str(), algorithm_gb_s,
                algorithm_gb_s * op.bus_factor(options.ranks));
  }
  const double tcp_us = of_path[2].median_us;
  std::printf("  | %7.1fx %7.1fx\n", tcp_us / of_path[0].median_us, tcp_us / of_path[1].median_us);
}

// A mover that moves nothing.
class NoMover final : public cpu_sim::Mover {
 public:
  void matched(cpu_sim::Exchange& exchange) override { exchange.set(cpu_sim::Phase::kDone); }
  void complete(cpu_sim::Exchange&, int) override {}
  bool poll(cpu_sim::Exchange&, int) override { return true; }
  int64_t wire_bytes(const cpu_sim::Exchange&, int) const override { return 0; }
  bool needs_thread(const Call&) const override { return false; }
};

}  // namespace

double measure_post_us(int ranks) {
  cpu_sim::Watch watch(ranks, std::chrono::milliseconds(0));
  cpu_sim::MatchTable table(watch, false);
  NoMover mover;
  cpu_sim::ChannelInfo info{"world", std::vector<int>(static_cast<size_t>(ranks)), false};
  std::iota(info.ranks.begin(), info.ranks.end(), 0);
  cpu_sim::Channel& channel = table.channel(info);
  const at::Tensor tensor = at::ones({4});
  constexpr int kCalls = 20'000;
  const auto begin = Clock::now();
  for (int i = 0; i < kCalls; ++i) {
    for (int seat = 0; seat < ranks; ++seat) {
      Call call{.verb = Verb::kAllReduce, .input = tensor, .output = tensor};
      table.post(channel, seat, std::move(call), mover);
    }
  }
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCalls / ranks;
}

namespace {

void print_collectives_head(const BenchCollectivesOptions& options) {
  std::printf("# %d ranks, fp32; times in us, bandwidths in GB/s; all_reduce and broadcast in place\n", options.ranks);
  std::printf("%-15s %10s", "", "");
  for (const PathRow& path : kPaths) std::printf("  | %-35s", path.name);
  std::printf("  | gloo-tcp against\n%-15s %10s", "op", "bytes");
  for (size_t p = 0; p < kPaths.size(); ++p) std::printf("  | %9s %9s %7s %7s", "median", "min", "algbw", "busbw");
  std::printf("  | %8s %8s\n", "direct", "inproc");
}

}  // namespace

int run_bench_collectives(const BenchCollectivesOptions& options) {
  if (!options.json) print_collectives_head(options);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Op& op : kOps) {
    for (const int64_t bytes : options.sizes) {
      const Timings of_path = run_paths(options, op, bytes);
      rows.push_back(row_json(options, op, bytes, of_path));
      if (!options.json) print_row(options, op, bytes, of_path);
    }
  }
  const double post_us = measure_post_us(options.ranks);
  if (options.json) {
    std::fputs(json_result({{"ranks", options.ranks}, {"collectives", rows}, {"watch_us_per_call", post_us}}).c_str(),
               stdout);
  } else {
    std::printf("# the watchdog: posting and matching a call costs each rank %.2f us\n", post_us);
  }
  return 0;
}

}  // namespace ranklab
