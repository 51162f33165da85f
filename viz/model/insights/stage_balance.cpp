#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "core/pipeline/balanced_split.h"
#include "viz/model/insights/insight.h"
#include "viz/model/insights/stage_work.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

std::string advice_of(const StageTable& table, bool slow_has_head) {
  int64_t layers_ns = 0, embedding_ns = 0, head_ns = 0;
  std::vector<int64_t> now;
  for (const auto& [stage, work] : table.stages) {
    layers_ns += work.layers_ns;
    embedding_ns += work.embedding_ns;
    head_ns += work.head_ns;
    now.push_back(work.layers);
  }
  const auto layers = std::accumulate(now.begin(), now.end(), int64_t{0}), stages = static_cast<int64_t>(now.size());
  if (layers < stages || layers_ns <= 0) return "give the slow stage fewer layers: --pipeline-layout";
  const std::vector<double> work(static_cast<size_t>(layers),
                                 static_cast<double>(layers_ns) / static_cast<double>(layers));
  const EndWork ends{.ahead = static_cast<double>(embedding_ns), .behind = static_cast<double>(head_ns)};
  const double in_layers = ends.behind / work[0];
  const std::vector<int64_t> better = balanced_split(work, ends, stages);
  if (fullest_stage(work, ends, better) > 0.97 * fullest_stage(work, ends, now)) {
    const std::string because =
        slow_has_head && in_layers >= 1 ? strprintf(": the head alone is %.1f layers", in_layers) : "";
    return strprintf("no other split of %lld layers is better%s; more layers, or fewer stages",
                     static_cast<long long>(layers), because.c_str());
  }
  return "try --pipeline-layout " + join(std::span<const int64_t>(better), ",");
}

}  // namespace

std::optional<Insight> stage_balance(const InsightInput& in) {
  constexpr double kRatio = 1.1, kShare = 0.04;
  const StageTable table = stage_table(in.store, in.window);
  if (table.stages.empty()) return {};
  // Ranks with several stages are as full as the sum of theirs.
  std::map<size_t, int64_t> of_rank;
  for (const auto& [stage, work] : table.stages) of_rank[work.rank_index] += work.actions_ns;
  int64_t most = 0, sum = 0;
  for (const auto& [rank, ns] : of_rank) {
    most = std::max(most, ns);
    sum += ns;
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(of_rank.size());
  if (mean <= 0 || static_cast<double>(most) < kRatio * mean) return {};
  const double total = static_cast<double>(in.bubbles.all.total_ns) / static_cast<double>(in.bubbles.ranks.size());
  const double share = (static_cast<double>(most) - mean) / total;
  if (share < kShare) return {};
  const auto slow = std::max_element(table.stages.begin(), table.stages.end(), [&](const auto& a, const auto& b) {
    return of_rank[a.second.rank_index] < of_rank[b.second.rank_index];
  });
  const StageWork& work = slow->second;
  std::string why;
  int most_layers = 0;
  for (const auto& [stage, other] : table.stages)
    most_layers = std::max(most_layers, stage == slow->first ? 0 : other.layers);
  if (work.head_ns > 0 && work.layers <= most_layers)
    why = strprintf(", for it has the head (%s of its work)",
                    format_percent(static_cast<double>(work.head_ns) / static_cast<double>(work.actions_ns)).c_str());
  else if (work.layers > 0)
    why = strprintf(", with %d layer%s", work.layers, work.layers == 1 ? "" : "s");
  Insight out{.rule = "stage balance", .share = share, .text = {}, .advice = {}};
  const int rank = in.store.rank(work.rank_index).global_rank;
  out.text = strprintf("stage %d (rank %d) works %.2f times the mean of the stages%s; the others wait for it",
                       slow->first, rank, static_cast<double>(most) / mean, why.c_str());
  const bool one_each = of_rank.size() == table.stages.size();
  out.advice = one_each ? advice_of(table, work.head_ns > 0) : "give the slow stage fewer layers: --pipeline-layout";
  const RankTrace& trace = in.store.trace(work.rank_index);
  for (uint32_t i = 0; i < trace.events.size() && !out.event; ++i)
    if (trace.events[i].kind == EventKind::kCompute && trace.events[i].stage == slow->first &&
        in.window.has(trace.events[i], in.store.clock()))
      out.event = EventRef{work.rank_index, i};
  return out;
}

}  // namespace ranklab::viz
