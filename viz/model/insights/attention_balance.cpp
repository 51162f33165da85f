#include <algorithm>

#include "core/base/text.h"
#include "viz/model/insights/attention_waits.h"
#include "viz/model/insights/insight.h"
#include "viz/model/tables/attention_table.h"

namespace ranklab::viz {

// How long the rank with the largest part of the causal triangle makes the others of its ring wait. That is less than
// its additional work if messages take longer than the attention that hides them; then even work would not be faster
// either.
std::optional<Insight> attention_balance(const InsightInput& in) {
  constexpr double kRatio = 1.2, kShare = 0.03;
  int64_t waited_ns = 0;
  for (size_t rank = 0; rank < in.bubbles.ranks.size(); ++rank)
    for (const IdleInterval& idle : in.bubbles.ranks[rank].idle)
      if (waits_for_attention(in, rank, idle)) waited_ns += idle.range.length_ns();
  const double share = static_cast<double>(waited_ns) / static_cast<double>(in.bubbles.all.total_ns);
  if (share < kShare) return {};
  const AttentionTable table = attention_table(in.store, in.window);
  const AttentionGroup* group = nullptr;
  const AttentionUse* worst = nullptr;
  for (const AttentionGroup& each : table.groups) {
    for (const AttentionUse& use : each.uses) {
      if (worst != nullptr && use.imbalance() <= worst->imbalance()) continue;
      group = &each;
      worst = &use;
    }
  }
  if (worst == nullptr || worst->imbalance() < kRatio) return {};
  Insight out{.rule = "attention balance", .share = share, .text = {}, .advice = {}};
  out.text = strprintf(
      "attention is uneven: rank %d attends to %.1f times the mean of %zu context-parallel ranks, which wait for it",
      in.store.rank(group->members[worst->fullest()]).global_rank, worst->imbalance(), worst->tiles.size());
  const bool contiguous = !worst->striped && static_cast<size_t>(worst->chunks) == worst->tiles.size();
  out.advice = contiguous ? "try --cp-balance zigzag" : "try --cp-comm-type a2a, which splits heads";
  out.event = worst->tiles[worst->fullest()].front().event;
  return out;
}

}  // namespace ranklab::viz
