#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "viz/model/insights/insight.h"

namespace ranklab::viz {
namespace {

struct TransferKind {
  Axis axis = Axis::kWorld;
  Verb verb = Verb::kBarrier;
  Purpose purpose = Purpose::kOther;
  auto operator<=>(const TransferKind&) const = default;
};
struct Exposed {
  int64_t ns = 0, bytes = 0;
  int64_t calls = 0, longest_ns = -1;
  EventRef longest;
};

std::string advice_of(const TransferKind& kind) {
  switch (kind.axis) {
    case Axis::kDp:
    case Axis::kEdp:
    case Axis::kDpShard:
    case Axis::kEdpShard:
      if (kind.verb == Verb::kAllGather)
        return "try a lower ZeRO stage (--zero-stage 2), or more tokens per rank (--gbs)";
      return "try --overlap-grad-reduce with larger buckets (--ddp-bucket-bytes), or more tokens per rank (--gbs)";
    case Axis::kTp:
      return "try fewer tensor-parallel ranks (--tp), or wider layers on each";
    case Axis::kPp:
      return "try fewer, larger stages (--pp), or --pipeline-schedule with fewer messages (vpp 1)";
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
      if (event.kind != EventKind::kCollective || event.virtual_exposed_ns <= 0) continue;
      if (!in.window.has(event, in.store.clock())) continue;
      Exposed& to = kinds[{event.axis, event.verb, event.purpose}];
      to.ns += event.virtual_exposed_ns;
      to.bytes += event.algorithm_bytes;
      ++to.calls;
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
  const std::string purpose = kind.purpose == Purpose::kOther ? "" : " (" + std::string(name(kind.purpose)) + ")";
  Insight out{.rule = "exposed communication", .share = share, .text = {}, .advice = advice_of(kind)};
  out.text = strprintf("compute waits for %s of %s%s: %lld transfers of %s that nothing hides",
                       std::string(name(kind.verb)).c_str(), std::string(name(kind.axis)).c_str(), purpose.c_str(),
                       static_cast<long long>(worst->second.calls), human_bytes(mean_bytes).c_str());
  out.event = worst->second.longest;
  return out;
}

}  // namespace ranklab::viz
