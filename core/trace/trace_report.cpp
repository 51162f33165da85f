#include "core/trace/trace_report.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/text.h"
#include "core/trace/trace_level.h"

namespace ranklab {
namespace {

constexpr size_t kAxes = static_cast<size_t>(Axis::kCount);

// The length of the union of the compute spans, which is the compute time on the wall clock.
int64_t covered_ns(const std::vector<Event>& events, TraceClock clock) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const Event& event : events) {
    if (event.kind == EventKind::kCompute) spans.emplace_back(begin_ns(event, clock), end_ns(event, clock));
  }
  std::sort(spans.begin(), spans.end());
  int64_t covered = 0, reached = std::numeric_limits<int64_t>::min();
  for (const auto& [begin, end] : spans) {
    if (end <= reached) continue;
    covered += end - std::max(begin, reached);
    reached = end;
  }
  return covered;
}

RankSummary summarize(const RankTrace& trace, TraceClock clock) {
  RankSummary out;
  out.global_rank = trace.global_rank;
  out.label = trace.label;
  out.events = static_cast<int64_t>(trace.events.size());
  out.dropped = trace.dropped;
  std::set<int> steps;
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  for (const Event& event : trace.events) {
    if (event.step >= 0) steps.insert(event.step);
    first = std::min(first, begin_ns(event, clock));
    last = std::max(last, end_ns(event, clock));
    if (event.kind != EventKind::kCollective) continue;
    if (clock == TraceClock::kVirtual && event.virtual_posted_ns != kNoTime)
      first = std::min(first, event.virtual_posted_ns);
    Traffic& traffic = out.traffic[{event.axis, event.verb}];
    ++traffic.calls;
    traffic.busy_ns += end_ns(event, clock) - begin_ns(event, clock);
    traffic.logical_bytes += event.logical_bytes;
    traffic.algorithm_bytes += event.algorithm_bytes;
    traffic.wire_bytes += event.wire_bytes;
    out.exposed_ns[static_cast<size_t>(event.axis)] += event.virtual_exposed_ns;
    out.peer_wait_ns += event.virtual_peer_wait_ns;
  }
  out.steps = static_cast<int>(steps.size());
  out.total_ns = trace.events.empty() ? 0 : last - first;
  out.knows_compute = !has_phases_only(trace);
  out.knows_waits = out.knows_compute && clock == TraceClock::kVirtual;
  if (!out.knows_compute) return out;
  out.compute_ns = clock == TraceClock::kVirtual
                       ? std::max<int64_t>(0, out.total_ns - out.exposed_total_ns() - out.peer_wait_ns)
                       : covered_ns(trace.events, clock);
  return out;
}

std::vector<Axis> axes_seen(const std::vector<RankSummary>& summaries) {
  std::set<Axis> axes;
  for (const RankSummary& summary : summaries) {
    for (const auto& [key, traffic] : summary.traffic) axes.insert(key.first);
  }
  return {axes.begin(), axes.end()};
}

std::string traffic_table(const std::vector<RankSummary>& summaries) {
  std::map<std::pair<Axis, Verb>, Traffic> sum;
  for (const RankSummary& summary : summaries) {
    for (const auto& [key, traffic] : summary.traffic) {
      Traffic& to = sum[key];
      to.calls += traffic.calls;
      to.busy_ns += traffic.busy_ns;
      to.logical_bytes += traffic.logical_bytes;
      to.algorithm_bytes += traffic.algorithm_bytes;
      to.wire_bytes += traffic.wire_bytes;
    }
  }
  std::string out = strprintf("%-6s %-15s %8s %10s %12s %12s %12s\n", "axis", "verb", "calls", "time", "logical",
                              "algorithm", "wire");
  for (const auto& [key, traffic] : sum) {
    out += strprintf("%-6s %-15s %8lld %10s %12s %12s %12s\n", std::string(name(key.first)).c_str(),
                     std::string(name(key.second)).c_str(), static_cast<long long>(traffic.calls),
                     human_ns(static_cast<double>(traffic.busy_ns)).c_str(),
                     human_bytes(static_cast<double>(traffic.logical_bytes)).c_str(),
                     human_bytes(static_cast<double>(traffic.algorithm_bytes)).c_str(),
                     human_bytes(static_cast<double>(traffic.wire_bytes)).c_str());
  }
  return out;
}

}  // namespace

int64_t RankSummary::exposed_total_ns() const {
  return std::accumulate(exposed_ns.begin(), exposed_ns.end(), int64_t{0});
}

int64_t RankSummary::communication_ns() const {
  int64_t sum = 0;
  for (const auto& [key, traffic_of_key] : traffic) sum += traffic_of_key.busy_ns;
  return sum;
}

std::optional<double> RankSummary::overlap() const {
  const auto busy = static_cast<double>(communication_ns());
  if (busy <= 0 || !knows_waits) return std::nullopt;
  return std::clamp(1 - static_cast<double>(exposed_total_ns()) / busy, 0.0, 1.0);
}

std::vector<RankSummary> summarize(const TraceFile& file) {
  std::vector<RankSummary> out;
  for (const RankTrace& trace : file.ranks) out.push_back(summarize(trace, file.clock));
  return out;
}

std::string format_summary(const std::vector<RankSummary>& summaries) {
  const std::vector<Axis> axes = axes_seen(summaries);
  std::string out =
      strprintf("%-20s %6s %8s %10s %10s %10s", "rank", "steps", "events", "total", "compute", "peer wait");
  for (const Axis axis : axes) out += strprintf(" %14s", ("exposed " + std::string(name(axis))).c_str());
  out += strprintf(" %8s\n", "overlap");
  for (const RankSummary& summary : summaries) {
    const std::string who = std::to_string(summary.global_rank) + " " + summary.label;
    const auto time = [](int64_t ns, bool known) { return known ? human_ns(static_cast<double>(ns)) : "-"; };
    out +=
        strprintf("%-20s %6d %8lld %10s %10s %10s", who.c_str(), summary.steps, static_cast<long long>(summary.events),
                  time(summary.total_ns, true).c_str(), time(summary.compute_ns, summary.knows_compute).c_str(),
                  time(summary.peer_wait_ns, summary.knows_waits).c_str());
    for (const Axis axis : axes)
      out += strprintf(" %14s", time(summary.exposed_ns[static_cast<size_t>(axis)], summary.knows_waits).c_str());
    const std::optional<double> overlap = summary.overlap();
    out += strprintf(" %8s\n", overlap ? strprintf("%.1f%%", 100 * *overlap).c_str() : "-");
    if (summary.dropped > 0) {
      out += strprintf("  rank %d dropped %lld events: its ring was full\n", summary.global_rank,
                       static_cast<long long>(summary.dropped));
    }
  }
  return out + "\n" + traffic_table(summaries);
}

std::string format_summary_json(const std::vector<RankSummary>& summaries) {
  using nlohmann::ordered_json;
  const auto known = [](const ordered_json& value, bool is) { return is ? value : ordered_json(); };
  ordered_json ranks = ordered_json::array();
  for (const RankSummary& summary : summaries) {
    nlohmann::ordered_json exposed = nlohmann::ordered_json::object(), traffic = nlohmann::ordered_json::array();
    for (size_t axis = 0; axis < kAxes; ++axis) {
      if (summary.exposed_ns[axis] > 0) exposed[std::string(name(static_cast<Axis>(axis)))] = summary.exposed_ns[axis];
    }
    for (const auto& [key, value] : summary.traffic) {
      traffic.push_back({{"axis", name(key.first)},
                         {"verb", name(key.second)},
                         {"calls", value.calls},
                         {"busy_ns", value.busy_ns},
                         {"logical_bytes", value.logical_bytes},
                         {"algorithm_bytes", value.algorithm_bytes},
                         {"wire_bytes", value.wire_bytes}});
    }
    ranks.push_back({{"rank", summary.global_rank},
                     {"label", summary.label},
                     {"steps", summary.steps},
                     {"events", summary.events},
                     {"dropped", summary.dropped},
                     {"total_ns", summary.total_ns},
                     {"compute_ns", known(summary.compute_ns, summary.knows_compute)},
                     {"peer_wait_ns", known(summary.peer_wait_ns, summary.knows_waits)},
                     {"exposed_ns", known(exposed, summary.knows_waits)},
                     {"overlap", known(summary.overlap().value_or(0), summary.overlap().has_value())},
                     {"traffic", traffic}});
  }
  return nlohmann::ordered_json{{"ranks", ranks}}.dump(2) + "\n";
}

}  // namespace ranklab
