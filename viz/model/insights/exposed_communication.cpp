#include <algorithm>
#include <map>
#include <span>

#include "core/base/text.h"
#include "viz/model/insights/insight.h"

namespace ranklab::viz {
namespace {

// Transfers of a group. Data-parallel ones differ by verb: gradients out, parameters in.
struct TransferKind {
  Axis axis = Axis::kWorld;
  Verb verb = Verb::kCount;  // kCount: any
  auto operator<=>(const TransferKind&) const = default;
};
struct Exposed {
  int64_t ns = 0, duration_ns = 0, bytes = 0;
  int64_t calls = 0, longest_ns = -1;
  std::map<Verb, int64_t> verbs;  // exposed, by verb
  EventRef longest;
};

// `hidden`: compute hides a part of these transfers already.
std::string advice_of(const TransferKind& kind, bool hidden) {
  switch (kind.axis) {
    case Axis::kDp:
    case Axis::kEdp:
    case Axis::kDpShard:
    case Axis::kEdpShard:
      if (kind.verb == Verb::kAllGather)
        return "try more tokens per rank (--gbs); at ZeRO stage 3 --zero-stage 2 gathers less often";
      if (hidden) return "try more tokens per rank (--gbs), or fewer data-parallel ranks with more of another axis";
      return "try --overlap-grad-reduce with larger buckets (--ddp-bucket-bytes), or more tokens per rank (--gbs)";
    case Axis::kTp:
      return "try fewer tensor-parallel ranks (--tp), or wider layers on each";
    case Axis::kPp:
      return "try fewer, larger stages (--pp), or --pipeline-schedule with fewer messages (vpp 1)";
    case Axis::kCp:
    case Axis::kCpHeads:
    case Axis::kCpRing:
      return "try fewer context-parallel ranks (--cp), or longer sequences: attention, which hides the hops, grows "
             "faster";
    case Axis::kEp:
      return "try --overlap-moe-expert-parallel-comm, or --moe-token-dispatcher-type dedup";
    default:
      return "try a layout with fewer ranks on this axis";
  }
}

}  // namespace

std::optional<Insight> exposed_communication(const InsightInput& in) {
  constexpr double kShare = 0.08;
  std::map<TransferKind, Exposed> kinds;
  for (size_t r = 0; r < in.store.traces().size(); ++r) {
    const std::vector<Event>& events = in.store.trace(r).events;
    for (uint32_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      if (event.kind != EventKind::kCollective) continue;
      if (!in.window.has(event, in.store.clock())) continue;
      const bool data = event.axis == Axis::kDp || event.axis == Axis::kEdp || event.axis == Axis::kDpShard ||
                        event.axis == Axis::kEdpShard;
      Exposed& to = kinds[{event.axis, data ? event.verb : Verb::kCount}];
      to.ns += event.virtual_exposed_ns;
      to.duration_ns += end_ns(event, in.store.clock()) - begin_ns(event, in.store.clock());
      to.bytes += event.algorithm_bytes;
      ++to.calls;
      to.verbs[event.verb] += event.virtual_exposed_ns;
      if (event.virtual_exposed_ns <= to.longest_ns) continue;
      to.longest_ns = event.virtual_exposed_ns;
      to.longest = {r, i};
    }
  }
  const auto worst = std::max_element(kinds.begin(), kinds.end(),
                                      [](const auto& a, const auto& b) { return a.second.ns < b.second.ns; });
  if (worst == kinds.end()) return {};
  const double share = static_cast<double>(worst->second.ns) / static_cast<double>(in.bubbles.all.total_ns);
  if (share < kShare) return {};
  const TransferKind& kind = worst->first;
  const auto mean_bytes = static_cast<double>(worst->second.bytes) / static_cast<double>(worst->second.calls);
  std::vector<std::string> verbs;  // those that matter
  for (const auto& [verb, ns] : worst->second.verbs)
    if (ns * 5 >= worst->second.ns) verbs.emplace_back(name(verb));
  const bool hidden = worst->second.ns < worst->second.duration_ns * 9 / 10;
  Insight out{.rule = "exposed communication", .share = share, .text = {}, .advice = {}};
  out.text = strprintf("compute waits for %s of %s: %lld transfers of %s that %s",
                       join(std::span<const std::string>(verbs), ", ").c_str(), std::string(name(kind.axis)).c_str(),
                       static_cast<long long>(worst->second.calls), human_bytes(mean_bytes).c_str(),
                       hidden ? "compute hides only in part" : "nothing hides");
  out.advice = advice_of(kind, hidden);
  out.event = worst->second.longest;
  return out;
}

}  // namespace ranklab::viz
