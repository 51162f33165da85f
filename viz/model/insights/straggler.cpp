#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "viz/model/insights/attention_waits.h"
#include "viz/model/insights/insight.h"

namespace ranklab::viz {
// A rank for which the others wait in collectives.
std::optional<Insight> straggler(const InsightInput& in) {
  constexpr double kShare = 0.05, kOneRank = 0.5;
  struct Late {
    int64_t ns = 0;
    int64_t attention_ns = 0;  // the part of it spent on waits for keys and values
    int64_t longest_ns = -1;
    std::optional<EventRef> event = {};
  };
  std::map<int, Late> late;
  int64_t sum = 0;
  for (size_t r = 0; r < in.bubbles.ranks.size(); ++r) {
    for (const IdleInterval& idle : in.bubbles.ranks[r].idle) {
      if (idle.cause != BubbleCause::kStraggler) continue;
      const int64_t ns = idle.range.length_ns();
      sum += ns;
      if (idle.waits_for_rank < 0) continue;
      Late& to = late[idle.waits_for_rank];
      to.ns += ns;
      if (waits_for_attention(in, r, idle)) to.attention_ns += ns;
      if (ns <= to.longest_ns || idle.event == kNoEvent) continue;
      to.longest_ns = ns;
      to.event = EventRef{r, static_cast<uint32_t>(idle.event)};
    }
  }
  const auto worst = std::max_element(late.begin(), late.end(),
                                      [](const auto& a, const auto& b) { return a.second.ns < b.second.ns; });
  if (worst == late.end()) return {};
  const double share = static_cast<double>(worst->second.ns) / static_cast<double>(in.bubbles.all.total_ns);
  if (share < kShare || static_cast<double>(worst->second.ns) < kOneRank * static_cast<double>(sum)) return {};
  // If the rank is late because it has the most attention work, the rule for that reports it.
  if (worst->second.attention_ns * 2 > worst->second.ns && attention_balance(in)) return {};
  Insight out{.rule = "straggler", .share = share, .text = {}, .advice = {}, .event = worst->second.event};
  out.text = strprintf("rank %d comes late to collectives, and its peers wait for it", worst->first);
  out.advice =
      strprintf("look at what rank %d does before them: more work, a slower link, or a slower device", worst->first);
  return out;
}

}  // namespace ranklab::viz
