#include <algorithm>
#include <map>
#include <span>

#include "core/base/text.h"
#include "viz/model/insights/insight.h"
#include "viz/model/insights/stage_work.h"

namespace ranklab::viz {
namespace {

// The transfers of one kind of group. Data-parallel ones are separated by verb: gradients are reduced, parameters are
// gathered.
struct TransferKind {
  Axis axis = Axis::kWorld;
  Verb verb = Verb::kCount;  // kCount: any
  auto operator<=>(const TransferKind&) const = default;
};
struct Exposed {
  int64_t ns = 0, duration_ns = 0, bytes = 0;
  int64_t calls = 0, longest_ns = -1;
  EventRef longest;

  void add(const Exposed& other) {
    ns += other.ns;
    duration_ns += other.duration_ns;
    bytes += other.bytes;
    calls += other.calls;
    if (other.longest_ns <= longest_ns) return;
    longest_ns = other.longest_ns;
    longest = other.longest;
  }
};
using ByVerb = std::map<Verb, Exposed>;

Exposed sum_of(const ByVerb& verbs) {
  Exposed sum;
  for (const auto& [verb, one] : verbs) sum.add(one);
  return sum;
}

// Large messages that compute mostly waits for, so that cutting them into pieces costs less than it hides.
bool are_whole_messages(const Exposed& exposed) {
  constexpr int64_t kLarge = int64_t{4} << 20;
  return exposed.bytes / exposed.calls >= kLarge && exposed.ns * 10 > exposed.duration_ns * 6;
}

// `hidden`: compute already hides a part of these transfers. `whole_layers`: no backward is split into B and W, so
// microbatches can alternate inside a layer.
std::string advice_of(const TransferKind& kind, bool hidden, bool whole_layers, bool whole_messages) {
  switch (kind.axis) {
    case Axis::kDp:
    case Axis::kEdp:
    case Axis::kDpShard:
    case Axis::kEdpShard:
      if (kind.verb == Verb::kAllGather && !hidden)
        return "try --overlap-param-gather (ZeRO stages 1 and 2), or more tokens per rank (--gbs)";
      if (kind.verb == Verb::kAllGather)
        return "try more tokens per rank (--gbs); at ZeRO stage 3 --zero-stage 2 gathers less often";
      if (hidden) return "try more tokens per rank (--gbs), or fewer data-parallel ranks with more of another axis";
      return "try --overlap-grad-reduce with larger buckets (--ddp-bucket-bytes), or more tokens per rank (--gbs)";
    case Axis::kTp:
      if (whole_messages)
        return "try --tp-comm-overlap with --sequence-parallel, or fewer tensor-parallel ranks (--tp)";
      return "try fewer tensor-parallel ranks (--tp), or wider layers on each";
    case Axis::kPp:
      return "try fewer, larger stages (--pp), or --pipeline-schedule with fewer messages (vpp 1)";
    case Axis::kCp:
    case Axis::kCpHeads:
    case Axis::kCpRing:
      return "try fewer context-parallel ranks (--cp), or longer sequences: attention, which hides the hops, grows "
             "faster";
    case Axis::kEp:
      if (!whole_layers) return "try --moe-token-dispatcher-type dedup";
      return "try --overlap-moe-expert-parallel-comm, or --moe-token-dispatcher-type dedup";
    default:
      return "try a layout with fewer ranks on this axis";
  }
}

std::map<TransferKind, ByVerb> transfers_of(const InsightInput& in) {
  std::map<TransferKind, ByVerb> kinds;
  for (size_t r = 0; r < in.store.traces().size(); ++r) {
    const std::vector<Event>& events = in.store.trace(r).events;
    for (uint32_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      if (event.kind != EventKind::kCollective || !in.window.has(event, in.store.clock())) continue;
      const bool data = event.axis == Axis::kDp || event.axis == Axis::kEdp || event.axis == Axis::kDpShard ||
                        event.axis == Axis::kEdpShard;
      kinds[{event.axis, data ? event.verb : Verb::kCount}][event.verb].add(
          {event.virtual_exposed_ns,
           end_ns(event, in.store.clock()) - begin_ns(event, in.store.clock()),
           event.algorithm_bytes,
           1,
           event.virtual_exposed_ns,
           {r, i}});
    }
  }
  return kinds;
}

}  // namespace

std::optional<Insight> exposed_communication(const InsightInput& in) {
  constexpr double kShare = 0.08;
  const auto total = static_cast<double>(in.bubbles.all.total_ns);
  const std::map<TransferKind, ByVerb> kinds = transfers_of(in);
  const auto worst = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
    return sum_of(a.second).ns < sum_of(b.second).ns;
  });
  if (worst == kinds.end()) return {};
  const int64_t all_ns = sum_of(worst->second).ns;
  if (static_cast<double>(all_ns) / total < kShare) return {};
  // All numbers are sums over the verbs that are named, which are those that matter.
  Exposed named;
  std::vector<std::string> verbs;
  for (const auto& [verb, one] : worst->second) {
    if (one.ns * 5 < all_ns) continue;
    named.add(one);
    verbs.emplace_back(name(verb));
  }
  const bool hidden = named.ns < named.duration_ns * 9 / 10;
  Insight out{
      .rule = "exposed communication", .share = static_cast<double>(named.ns) / total, .text = {}, .advice = {}};
  out.text = strprintf("compute waits for %s of %s: %lld transfers of %s that %s",
                       join(std::span<const std::string>(verbs), ", ").c_str(),
                       std::string(name(worst->first.axis)).c_str(), static_cast<long long>(named.calls),
                       human_bytes(static_cast<double>(named.bytes) / static_cast<double>(named.calls)).c_str(),
                       hidden ? "compute hides only in part" : "nothing hides");
  out.advice =
      advice_of(worst->first, hidden, !stage_table(in.store, in.window).splits_backward, are_whole_messages(named));
  out.event = named.longest;
  return out;
}

}  // namespace ranklab::viz
