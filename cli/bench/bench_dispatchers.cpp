#include "cli/bench/bench_dispatchers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "backends/cpu_sim/thread_world.h"
#include "cli/common/json_output.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/rank_context.h"
#include "core/nn/router.h"
#include "core/parallel/expert/dispatcher.h"
#include "core/sim/aten.h"
#include "viz/model/tables/traffic_matrix.h"

namespace ranklab {
namespace {

using Options = BenchDispatchersOptions;

struct DispatcherRow {
  std::string dispatcher;
  double calls = 0, messages = 0;            // per rank
  double bytes_in_node = 0, bytes_away = 0;  // per rank, to others
  double forward_ms = 0, together_ms = 0;    // virtual time of the slowest rank
  double wall_ms = 0;                        // median, including backward
};

MoeConfig moe_of(const Options& o) {
  return {.num_experts = o.experts, .topk = o.topk, .num_groups = o.groups, .group_topk = o.group_topk};
}

// The same routing for every dispatcher: top-k of scores with Gumbel noise, which samples experts by their weight.
Routing routing_of(const Options& o, int rank) {
  at::Generator generator = at::detail::createCPUGenerator(o.seed + static_cast<uint64_t>(rank));
  const at::Tensor uniform = at::rand({o.tokens, o.experts}, generator).clamp_(1e-9, 1 - 1e-7);
  const at::Tensor popularity = at::arange(1, o.experts + 1, at::TensorOptions(at::kFloat)).log() * -o.skew;
  const ExpertChoice choice = choose_experts(popularity - (-uniform.log()).log(), {}, moe_of(o));
  return {.experts_TK = choice.experts_TK, .weights_TK = choice.weights_TK, .kept_TK = {}, .num_experts = o.experts};
}

// The average number of places (with `experts_of_place` experts each) that hold at least one of a token's experts.
double mean_places(const Options& o, int64_t experts_of_place) {
  double sum = 0;
  for (int rank = 0; rank < o.ranks; ++rank) {
    const at::Tensor places = routing_of(o, rank).experts_TK.floor_divide(experts_of_place).contiguous();
    const int64_t* place = places.const_data_ptr<int64_t>();
    for (int64_t t = 0; t < o.tokens; ++t)
      sum += static_cast<double>(std::set<int64_t>(place + t * o.topk, place + (t + 1) * o.topk).size());
  }
  return sum / static_cast<double>(o.ranks * o.tokens);
}

struct RankResult {
  RankTrace trace;
  std::vector<double> wall_ms;
  double forward_ms = 0, together_ms = 0, error = 0;
};

double passed_ms(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

RankResult run_rank(const Options& o, const std::string& name, RankContext& context) {
  Communicator& ep = context.comm(Axis::kEp);
  context.tracer().set_enabled(false);
  const auto dispatcher =
      make_dispatcher(name, {.ep = &ep, .num_experts = o.experts, .gpus_per_node = o.gpus_per_node});
  Routing routing;
  at::Tensor tokens;
  {
    const NoCostScope free;
    routing = routing_of(o, ep.rank());
    routing.weights_TK.set_requires_grad(true);
    tokens = at::randn({o.tokens, o.hidden}, at::detail::createCPUGenerator(o.seed)).set_requires_grad(true);
  }
  RankResult result;
  for (int i = 0; i < 1 + o.iterations; ++i) {
    const bool timed = i > 0;
    ep.barrier();
    context.tracer().set_enabled(i == 1);
    const auto begin = std::chrono::steady_clock::now();
    const int64_t virtual_begin = context.clock().now_ns();
    const auto trip = dispatcher->dispatch(tokens, routing);
    const at::Tensor out = trip->combine(trip->rows());
    const int64_t virtual_forward = context.clock().now_ns();
    torch::autograd::backward({out}, {tokens.detach()});
    if (timed) result.wall_ms.push_back(passed_ms(begin));
    context.tracer().set_enabled(false);
    result.forward_ms = static_cast<double>(virtual_forward - virtual_begin) * 1e-6;
    result.together_ms = static_cast<double>(context.clock().now_ns() - virtual_begin) * 1e-6;
    const NoCostScope free;
    const at::Tensor want = tokens.detach() * routing.weights_TK.detach().sum(1, true);
    result.error = std::max(result.error, (out.detach() - want).abs().max().item<double>());
  }
  result.trace = context.tracer().trace();
  return result;
}

void count(DispatcherRow& row, const Options& o, std::vector<RankResult> ranks) {
  TraceFile file{.ranks = {}, .world_size = o.ranks, .gpus_per_node = o.gpus_per_node};
  for (RankResult& rank : ranks) {
    for (const Event& event : rank.trace.events)
      row.calls += event.kind == EventKind::kCollective && event.verb != Verb::kRecv ? 1.0 / o.ranks : 0;
    file.ranks.push_back(std::move(rank.trace));
  }
  const viz::TraceStore store(std::move(file));
  const auto total = [&](viz::NodeScope nodes) {
    return viz::traffic_matrix(store, {.range = store.range()}, {.nodes = nodes, .gpus_per_node = o.gpus_per_node})
        .total();
  };
  const auto inside = total(viz::NodeScope::kIntraNode), away = total(viz::NodeScope::kInterNode);
  row.bytes_in_node = static_cast<double>(inside.of(viz::TrafficLayer::kAlgorithm)) / o.ranks;
  row.bytes_away = static_cast<double>(away.of(viz::TrafficLayer::kAlgorithm)) / o.ranks;
  row.messages = static_cast<double>(inside.messages + away.messages) / o.ranks;
}

DispatcherRow run_dispatcher(const Options& o, const std::string& name, const HardwareProfile& profile) {
  const DeviceMesh mesh(ParallelDims{.world = o.ranks, .ep = o.ranks});
  std::vector<RankResult> ranks(static_cast<size_t>(o.ranks));
  make_thread_world({.size = o.ranks})->run([&](Endpoint& endpoint) {
    RankContext context(endpoint, mesh, {.profile = &profile, .gpus_per_node = o.gpus_per_node});
    ranks[static_cast<size_t>(endpoint.global_rank())] = run_rank(o, name, context);
  });
  DispatcherRow row{.dispatcher = name};
  for (const RankResult& rank : ranks) {
    row.forward_ms = std::max(row.forward_ms, rank.forward_ms);
    row.together_ms = std::max(row.together_ms, rank.together_ms);
    RANKLAB_CHECK(rank.error < 1e-4, ErrorKind::kNumeric, .where = "bench dispatchers",
                  .what = "the outputs are not the tokens times their weights",
                  .got = name + ", error " + std::to_string(rank.error), .want = "an error below 1e-4",
                  .fix = "report it: the dispatcher is broken");
  }
  std::vector<double> wall = ranks[0].wall_ms;
  std::sort(wall.begin(), wall.end());
  row.wall_ms = wall[wall.size() / 2];
  count(row, o, std::move(ranks));
  return row;
}

void check(const Options& o) {
  const bool legal = o.experts % o.ranks == 0 && o.experts % o.groups == 0 && o.group_topk <= o.groups &&
                     o.topk <= o.experts / o.groups * o.group_topk;
  RANKLAB_CHECK(
      legal, ErrorKind::kInvalidArgument, .where = "bench dispatchers", .what = "the sizes do not fit together",
      .got = strprintf("--experts %ld, --ranks %d, --groups %ld, --group-topk %ld, --topk %ld",
                       static_cast<long>(o.experts), o.ranks, static_cast<long>(o.groups),
                       static_cast<long>(o.group_topk), static_cast<long>(o.topk)),
      .want = "experts divisible by ranks and by groups, and topk of at most the experts in group-topk groups",
      .fix = "start from the defaults: ranklab bench dispatchers --help");
}

std::string head(const Options& o, const HardwareProfile& profile) {
  const int64_t of_rank = o.experts / o.ranks;
  std::string out = strprintf(
      "# %d ranks in nodes of %d, %ld tokens of %ld fp32 numbers each, %ld experts, top %ld; %s\n"
      "# a token's experts lie on %.2f ranks and %.2f nodes; what a rank sends to others, forward and backward\n",
      o.ranks, o.gpus_per_node, static_cast<long>(o.tokens), static_cast<long>(o.hidden), static_cast<long>(o.experts),
      static_cast<long>(o.topk), profile.title.c_str(), mean_places(o, of_rank),
      mean_places(o, of_rank * o.gpus_per_node));
  out += strprintf("%-11s %6s %9s %12s %14s %14s %14s %10s\n", "dispatcher", "calls", "messages", "in its node",
                   "to other nodes", "virt. forward", "with backward", "wall");
  return out;
}

std::string line(const DispatcherRow& r) {
  return strprintf("%-11s %6.0f %9.0f %12s %14s %11.3f ms %11.3f ms %7.1f ms\n", r.dispatcher.c_str(), r.calls,
                   r.messages, human_bytes(r.bytes_in_node).c_str(), human_bytes(r.bytes_away).c_str(), r.forward_ms,
                   r.together_ms, r.wall_ms);
}

std::string json_text(const std::vector<DispatcherRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DispatcherRow& r : rows)
    list.push_back({{"dispatcher", r.dispatcher},
                    {"calls", r.calls},
                    {"messages", r.messages},
                    {"bytes_in_node", r.bytes_in_node},
                    {"bytes_to_other_nodes", r.bytes_away},
                    {"virtual_forward_ms", r.forward_ms},
                    {"virtual_ms", r.together_ms},
                    {"wall_ms", r.wall_ms}});
  return json_result({{"dispatchers", list}});
}

}  // namespace

int run_bench_dispatchers(const Options& options) {
  check(options);
  const HardwareProfile profile = load_hardware_profile(options.hardware);
  std::vector<DispatcherRow> rows;
  if (!options.json) std::fputs(head(options, profile).c_str(), stdout);
  for (const std::string& name : dispatcher_names()) {
    rows.push_back(run_dispatcher(options, name, profile));
    if (!options.json) std::fputs(line(rows.back()).c_str(), stdout);
  }
  if (options.json) std::fputs(json_text(rows).c_str(), stdout);
  return 0;
}

}  // namespace ranklab
