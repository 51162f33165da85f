#include <algorithm>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "viz/model/insights/insight.h"
#include "viz/model/insights/stage_work.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
// Bubbles that even a balanced pipeline has: (p - 1) / (m + p - 1) of the time for 1F1B.
std::optional<Insight> pipeline_fill(const InsightInput& in) {
  constexpr double kShare = 0.15;
  const StageTable table = stage_table(in.store, in.window);
  if (table.stages.empty() || in.bubbles.all.total_ns <= 0) return {};
  std::map<size_t, int64_t> of_rank;
  for (const auto& [stage, work] : table.stages) of_rank[work.rank_index] += work.actions_ns;
  int64_t most = 0, sum = 0;
  for (const auto& [rank, ns] : of_rank) {
    most = std::max(most, ns);
    sum += ns;
  }
  const auto cause = [&](BubbleCause c) { return in.bubbles.all.by_cause_ns[static_cast<size_t>(c)]; };
  const int64_t idle_ns = cause(BubbleCause::kWarmUp) + cause(BubbleCause::kDrain) + cause(BubbleCause::kDependency);
  // Waiting for the stage with the most work is excluded, because the rule about balance reports it.
  const double mean = static_cast<double>(sum) / static_cast<double>(of_rank.size());
  const double total = static_cast<double>(in.bubbles.all.total_ns);
  const double imbalance = (static_cast<double>(most) - mean) * static_cast<double>(in.bubbles.ranks.size());
  const double share = (static_cast<double>(idle_ns) - imbalance) / total;
  if (share < kShare) return {};
  Insight out{.rule = "pipeline fill", .share = share, .text = {}, .advice = {}};
  out.text = strprintf("the pipeline of %d stages fills and drains with %s", static_cast<int>(table.stages.size()),
                       counted(table.microbatches, "microbatch", "es").c_str());
  out.advice =
      strprintf("try --num-microbatches %d (with a --gbs of as many sequences a replica)", 2 * table.microbatches);
  if (!table.splits_backward) out.advice += ", or a schedule with fewer bubbles: --pipeline-schedule zb-h1";
  // A schedule with a single stage per rank rejects the several stages of this run.
  if (!table.splits_backward && table.stages.size() > of_rank.size()) out.advice += " --vpp 1";
  for (size_t r = 0; r < in.bubbles.ranks.size() && !out.event; ++r)
    for (const IdleInterval& idle : in.bubbles.ranks[r].idle)
      if (idle.event != kNoEvent) {
        out.event = EventRef{r, static_cast<uint32_t>(idle.event)};
        break;
      }
  return out;
}

}  // namespace ranklab::viz
