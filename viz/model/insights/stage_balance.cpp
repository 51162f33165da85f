#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "core/pipeline/balanced_split.h"
#include "viz/model/insights/insight.h"
#include "viz/model/insights/stage_work.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

constexpr double kWorthIt = 0.97;  // a split is advised only below this share of the longest work

std::string no_better_split(int64_t layers, const std::string& because = "") {
  return strprintf("no other split of %lld layers is better%s; more layers, or fewer stages",
                   static_cast<long long>(layers), because.c_str());
}

std::string advice_of(const StageTable& table, bool slow_has_head) {
  int64_t layers_ns = 0, embedding_ns = 0, head_ns = 0;
  std::vector<int64_t> now;
  for (const auto& [stage, work] : table.stages) {
    layers_ns += work.layers_ns;
    embedding_ns += work.embedding_ns;
    head_ns += work.head_ns;
    now.push_back(work.layers);
    // A split by numbers of layers would move the modules of multi-token prediction to the stage of the head.
    if (work.predicts_further && work.head_ns == 0) return "give the slow stage fewer layers: --pipeline-layout";
  }
  const auto layers = std::accumulate(now.begin(), now.end(), int64_t{0}), stages = static_cast<int64_t>(now.size());
  if (layers < stages || layers_ns <= 0) return "give the slow stage fewer layers: --pipeline-layout";
  const std::vector<double> work(static_cast<size_t>(layers),
                                 static_cast<double>(layers_ns) / static_cast<double>(layers));
  const EndWork ends{.ahead = static_cast<double>(embedding_ns), .behind = static_cast<double>(head_ns)};
  const double in_layers = ends.behind / work[0];
  const std::vector<int64_t> better = balanced_split(work, ends, stages);
  if (fullest_stage(work, ends, better) > kWorthIt * fullest_stage(work, ends, now))
    return no_better_split(
        layers, slow_has_head && in_layers >= 1 ? strprintf(": the head alone is %.1f layers", in_layers) : "");
  return "try --pipeline-layout " + join(std::span<const int64_t>(better), ",");
}

// Sums over the stages of each rank, because ranks wait for ranks.
using RankWork = std::map<size_t, StageWork>;
RankWork work_of_ranks(const StageTable& table) {
  RankWork ranks;
  for (const auto& [stage, work] : table.stages) {
    StageWork& sum = ranks[work.rank_index];
    sum.rank_index = work.rank_index;
    sum.actions_ns += work.actions_ns;
    sum.layers_ns += work.layers_ns;
    sum.embedding_ns += work.embedding_ns;
    sum.head_ns += work.head_ns;
    sum.layers += work.layers;
  }
  return ranks;
}

// For ranks with several stages: whether it helps to move a layer from the slow rank to the one with the least work.
std::string advice_of_ranks(const RankWork& ranks, const StageWork& slow) {
  int64_t layers_ns = 0, layers = 0, least = slow.actions_ns;
  for (const auto& [rank, work] : ranks) {
    layers_ns += work.layers_ns;
    layers += work.layers;
    least = std::min(least, work.actions_ns);
  }
  const int64_t layer = layers == 0 ? 0 : layers_ns / layers;
  const auto then = static_cast<double>(std::max(slow.actions_ns - layer, least + layer));
  if (layers > 0 && then > kWorthIt * static_cast<double>(slow.actions_ns)) return no_better_split(layers);
  return "give the slow rank fewer layers: --pipeline-layout";
}

std::string why_slow(const RankWork& ranks, const StageWork& slow) {
  int most_layers = 0;
  for (const auto& [rank, work] : ranks) most_layers = std::max(most_layers, rank == slow.rank_index ? 0 : work.layers);
  if (slow.head_ns > 0 && slow.layers <= most_layers)
    return strprintf(", for it has the head (%s of its work)",
                     format_percent(static_cast<double>(slow.head_ns) / static_cast<double>(slow.actions_ns)).c_str());
  if (slow.layers > 0) return strprintf(", with %d layer%s", slow.layers, slow.layers == 1 ? "" : "s");
  return "";
}

// "stage 3 (rank 3)", or if the rank has several stages "rank 3 (stages 3, 7)".
std::string name_of_slow(const InsightInput& in, const StageTable& table, size_t rank_index) {
  std::vector<int> stages;
  for (const auto& [stage, work] : table.stages)
    if (work.rank_index == rank_index) stages.push_back(stage);
  const int rank = in.store.rank(rank_index).global_rank;
  if (stages.size() == 1) return strprintf("stage %d (rank %d)", stages[0], rank);
  return strprintf("rank %d (stages %s)", rank, join(std::span<const int>(stages), ", ").c_str());
}

}  // namespace

std::optional<Insight> stage_balance(const InsightInput& in) {
  constexpr double kRatio = 1.1, kShare = 0.04;
  const StageTable table = stage_table(in.store, in.window);
  if (table.stages.empty()) return {};
  const RankWork ranks = work_of_ranks(table);
  int64_t sum = 0;
  for (const auto& [rank, work] : ranks) sum += work.actions_ns;
  const auto by_work = [&](const auto& a, const auto& b) {
    return ranks.at(a.second.rank_index).actions_ns < ranks.at(b.second.rank_index).actions_ns;
  };
  const auto stage = std::max_element(table.stages.begin(), table.stages.end(), by_work);
  const StageWork& slow = ranks.at(stage->second.rank_index);
  const double most = static_cast<double>(slow.actions_ns);
  const double mean = static_cast<double>(sum) / static_cast<double>(ranks.size());
  if (mean <= 0 || most < kRatio * mean) return {};
  const double total = static_cast<double>(in.bubbles.all.total_ns) / static_cast<double>(in.bubbles.ranks.size());
  const double share = (most - mean) / total;
  if (share < kShare) return {};
  const bool one_each = ranks.size() == table.stages.size();
  Insight out{.rule = "stage balance", .share = share, .text = {}, .advice = {}};
  out.text = strprintf("%s works %.2f times the mean of the %s%s; the others wait for it",
                       name_of_slow(in, table, slow.rank_index).c_str(), most / mean, one_each ? "stages" : "ranks",
                       why_slow(ranks, slow).c_str());
  out.advice = one_each ? advice_of(table, slow.head_ns > 0) : advice_of_ranks(ranks, slow);
  const RankTrace& trace = in.store.trace(slow.rank_index);
  for (uint32_t i = 0; i < trace.events.size() && !out.event; ++i)
    if (trace.events[i].kind == EventKind::kCompute && trace.events[i].stage == stage->first &&
        in.window.has(trace.events[i], in.store.clock()))
      out.event = EventRef{slow.rank_index, i};
  return out;
}

}  // namespace ranklab::viz
