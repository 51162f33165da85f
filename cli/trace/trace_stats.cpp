#include "cli/trace/trace_stats.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "cli/common/json_output.h"
#include "cli/trace/table_json.h"
#include "cli/trace/trace_moe.h"
#include "cli/trace/trace_traffic.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/model/critical_path.h"
#include "viz/model/insights/insight.h"
#include "viz/model/store/load_trace.h"
#include "viz/model/store/time_text.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/memory_table.h"
#include "viz/model/tables/op_table.h"
#include "viz/model/tables/traffic_text.h"
#include "viz/model/tables/type_table.h"
#include "viz/model/text_timeline.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;
using viz::TraceStore;
using viz::Window;

struct Stats {
  viz::BubbleReport bubbles;
  std::vector<viz::OpRow> ops;
  viz::CriticalPath path;
  std::map<std::string, int64_t> path_ns;  // by operation, and "unknown"
  viz::TrafficMatrix traffic;
  std::vector<viz::Insight> insights;
  std::vector<viz::TypeRow> types;
};

Stats stats_of(const TraceStore& store, const Window& window) {
  Stats out;
  out.bubbles = viz::find_bubbles(store, window);
  out.ops = viz::op_table(store, window);
  out.path = viz::find_critical_path(store, window);
  out.traffic = viz::traffic_matrix(store, window);
  out.insights = viz::find_insights(store, window);
  out.types = viz::type_table(store, window);
  for (const viz::PathSegment& segment : out.path.segments) {
    int64_t named = 0;
    const auto add = [&](EventRef ref, int64_t time) {
      out.path_ns[viz::op_name(store.trace(ref.rank_index), store.event(ref))] += time;
      named += time;
    };
    if (segment.kind == viz::PathSegment::Kind::kTransfer) add(segment.events.front(), segment.range.length_ns());
    if (segment.kind == viz::PathSegment::Kind::kWork) {
      for (const EventRef ref : segment.events)
        add(ref,
            std::min(segment.range.end_ns, store.end_ns(ref)) - std::max(segment.range.begin_ns, store.begin_ns(ref)));
    }
    const bool unknown = segment.kind == viz::PathSegment::Kind::kUnknown;
    if (segment.range.length_ns() > named)
      out.path_ns[unknown ? "unknown" : "other work"] += segment.range.length_ns() - named;
  }
  return out;
}

struct LongIdle {
  size_t rank_index = 0;
  const viz::IdleInterval* idle = nullptr;
};
std::vector<LongIdle> longest(const Stats& stats, int rows) {
  std::vector<LongIdle> all;
  for (size_t r = 0; r < stats.bubbles.ranks.size(); ++r) {
    for (const viz::IdleInterval& idle : stats.bubbles.ranks[r].idle) all.push_back({r, &idle});
  }
  const auto shown = std::min(all.size(), static_cast<size_t>(rows));
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), all.end(),
                    [](const LongIdle& a, const LongIdle& b) {
                      const auto key = [](const LongIdle& one) {
                        return std::tuple(-one.idle->range.length_ns(), one.idle->range.begin_ns, one.rank_index);
                      };
                      return key(a) < key(b);
                    });
  all.resize(shown);
  return all;
}

std::string causes_text(const TraceStore& store, const Stats& stats) {
  if (stats.bubbles.all.total_ns == 0) return "";
  if (stats.bubbles.all.busy_ns == stats.bubbles.all.total_ns) return "no rank is idle\n";
  std::string out = "idle by cause (all ranks)\n";
  for (size_t c = 0; c < viz::kBubbleCauses; ++c) {
    const int64_t time = stats.bubbles.all.by_cause_ns[c];
    if (time == 0) continue;
    out += strprintf("  %-14s %14s %10s\n", std::string(name(static_cast<viz::BubbleCause>(c))).c_str(),
                     format_time(store, time).c_str(),
                     viz::format_percent(viz::share_of(time, stats.bubbles.all.total_ns)).c_str());
  }
  return out;
}

std::string idle_text(const TraceStore& store, const Stats& stats, int rows) {
  const std::vector<LongIdle> all = longest(stats, rows);
  if (all.empty()) return "";
  std::string out = "longest idle intervals\n";
  for (const LongIdle& one : all) {
    const int64_t at = one.idle->range.begin_ns - store.range().begin_ns;
    out +=
        strprintf("  r%-4d at %-12s %12s  %s\n", store.rank(one.rank_index).global_rank, format_time(store, at).c_str(),
                  format_time(store, one.idle->range.length_ns()).c_str(), describe(*one.idle).c_str());
  }
  return out + "\n";
}

std::string path_text(const TraceStore& store, const Stats& stats) {
  std::string out = "critical path: " + format_time(store, stats.path.length_ns()) + " of " +
                    format_time(store, stats.path.range.length_ns()) + "\n";
  std::vector<std::pair<std::string, int64_t>> rows(stats.path_ns.begin(), stats.path_ns.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, time] : rows)
    out += strprintf("  %-32s %14s %10s\n", viz::short_name(name).c_str(), format_time(store, time).c_str(),
                     viz::format_percent(viz::share_of(time, stats.path.length_ns())).c_str());
  return out;
}

std::string ops_text(const TraceStore& store, const Stats& stats, int rows) {
  std::string out = strprintf("%-32s %8s %14s %12s %12s %12s %12s %12s\n", "operation", "count", "total", "mean",
                              "exposed", "logical", "algorithm", "wire");
  size_t shown = 0;
  for (const viz::OpRow& op : stats.ops) {
    if (shown++ == static_cast<size_t>(rows)) break;
    const bool call = op.kind == EventKind::kCollective;
    const auto bytes = [&](int64_t value) { return call ? human_bytes(static_cast<double>(value)) : std::string(); };
    out += strprintf("%-32s %8lld %14s %12s %12s %12s %12s %12s\n", viz::short_name(op.name).c_str(),
                     static_cast<long long>(op.time.count), format_time(store, op.time.total_ns).c_str(),
                     format_time(store, static_cast<int64_t>(op.time.mean_ns())).c_str(),
                     call ? format_time(store, op.exposed_ns).c_str() : "", bytes(op.logical_bytes).c_str(),
                     bytes(op.algorithm_bytes).c_str(), bytes(op.wire_bytes).c_str());
  }
  const std::optional<double> hidden = viz::overlap(stats.ops);
  return hidden ? out + "overlap: " + viz::format_percent(*hidden) + " of the time on links is hidden by compute\n"
                : out;
}

std::string traffic_text(const TraceStore& store, const Window& window, const Stats& stats) {
  const viz::TrafficCell total = stats.traffic.total();
  if (total.messages == 0) return viz::why_phases_only(store).empty() ? "no rank sends anything to another\n" : "";
  const auto flows = traffic_flows(store, window, {.gpus_per_node = store.gpus_per_node()});
  return strprintf("traffic between ranks: %s, %s logical, %s algorithm, %s wire\n",
                   counted(total.messages, "send").c_str(),
                   human_bytes(static_cast<double>(total.of(viz::TrafficLayer::kLogical))).c_str(),
                   human_bytes(static_cast<double>(total.of(viz::TrafficLayer::kAlgorithm))).c_str(),
                   human_bytes(static_cast<double>(total.of(viz::TrafficLayer::kWire))).c_str()) +
         flows_text(flows, store.gpus_per_node());
}

ordered_json json_of(const TraceStore& store, const Window& window, const Stats& stats, int rows) {
  ordered_json ranks = ordered_json::array(), idle = ordered_json::array(), ops = ordered_json::array();
  for (size_t r = 0; r < stats.bubbles.ranks.size(); ++r) {
    ordered_json rank = {{"rank", store.rank(r).global_rank}, {"label", store.trace(r).label}};
    rank.update(split_json(stats.bubbles.ranks[r].time));
    ranks.push_back(rank);
  }
  for (const LongIdle& one : longest(stats, rows)) {
    idle.push_back({{"rank", store.rank(one.rank_index).global_rank},
                    {"begin_ns", one.idle->range.begin_ns},
                    {"end_ns", one.idle->range.end_ns},
                    {"cause", name(one.idle->cause)},
                    {"waits_for_rank", one.idle->waits_for_rank},
                    {"waits_for", one.idle->waits_for}});
  }
  for (const viz::OpRow& op : stats.ops) {
    ops.push_back({{"name", op.name},
                   {"count", op.time.count},
                   {"total_ns", op.time.total_ns},
                   {"exposed_ns", op.exposed_ns},
                   {"logical_bytes", op.logical_bytes},
                   {"algorithm_bytes", op.algorithm_bytes},
                   {"wire_bytes", op.wire_bytes}});
  }
  ordered_json types = ordered_json::array();
  for (const viz::TypeRow& row : stats.types)
    types.push_back(
        {{"name", row.op}, {"types", row.types.text()}, {"count", row.count}, {"logical_bytes", row.logical_bytes}});
  const std::optional<double> overlap = viz::overlap(stats.ops);
  return {{"source", store.source()},
          {"title", store.title()},
          {"clock", store.clock() == TraceClock::kVirtual ? "virtual" : "wall"},
          {"unit_ns", store.unit_ns()},
          {"step", window.step},
          {"length_ns", window.range.length_ns()},
          {"insights", insights_json(store, stats.insights)},
          {"all", split_json(stats.bubbles.all)},
          {"ranks", ranks},
          {"longest_idle", idle},
          {"critical_path", {{"length_ns", stats.path.length_ns()}, {"by_operation_ns", stats.path_ns}}},
          {"operations", ops},
          {"overlap", overlap ? ordered_json(*overlap) : ordered_json()},
          {"traffic", traffic_json(store, window)},
          {"types", types}};
}

Window window_of(const TraceStore& store, int step) {
  if (step < 0) return store.whole();
  const auto window = store.step_window(step);
  const auto steps = store.steps();
  RANKLAB_CHECK(window.has_value(), ErrorKind::kInvalidArgument, .where = "trace stats",
                .what = "the trace has no such step", .got = "--step " + std::to_string(step),
                .want = steps.empty() ? "no --step: the trace has none"
                                      : std::to_string(steps.front().step) + " to " + std::to_string(steps.back().step),
                .fix = "leave out --step for all of them");
  return *window;
}

}  // namespace

int trace_stats(const TraceStatsOptions& options) {
  TraceStore store = viz::load_traces(options.paths);
  if (options.gpus_per_node > 0) store.set_gpus_per_node(options.gpus_per_node);
  const Window window = window_of(store, options.step);
  if (options.moe) {
    print_moe_stats(store, window, options.json);
    return 0;
  }
  const Stats stats = stats_of(store, window);
  if (options.json) {
    const std::vector<std::string> warnings =
        store.warning().empty() ? std::vector<std::string>() : std::vector<std::string>{store.warning()};
    std::printf("%s\n", json_result(json_of(store, window, stats, options.rows), warnings).c_str());
    return 0;
  }
  if (!store.title().empty()) std::printf("%s\n", store.title().c_str());
  std::printf("%s: %s, %s, %s time%s, %s\n\n", store.source().c_str(),
              counted(std::ssize(store.ranks()), "rank").c_str(), counted(std::ssize(store.steps()), "step").c_str(),
              store.clock() == TraceClock::kVirtual ? "virtual" : "wall",
              options.step >= 0 ? (", step " + std::to_string(options.step)).c_str() : "",
              format_time(store, window.range.length_ns()).c_str());
  if (!stats.insights.empty())
    std::printf("what costs most, of the time of all ranks\n%s\n", viz::insights_text(stats.insights).c_str());
  std::printf("%s\n%s\n%s%s\n%s%s", text_totals(store, window).c_str(), causes_text(store, stats).c_str(),
              idle_text(store, stats, options.rows).c_str(), path_text(store, stats).c_str(),
              ops_text(store, stats, options.rows).c_str(), traffic_text(store, window, stats).c_str());
  if (!stats.types.empty()) std::printf("\n%s", viz::type_text(stats.types).c_str());
  const std::vector<viz::RankMemory> memory = viz::memory_table(store, window);
  if (viz::has_memory(memory)) std::printf("\nmemory: %s", viz::memory_text(memory).c_str());
  if (store.dropped() > 0) std::printf("%lld events were dropped\n", static_cast<long long>(store.dropped()));
  if (!store.warning().empty()) std::printf("%s\n", store.warning().c_str());
  return 0;
}

}  // namespace ranklab
