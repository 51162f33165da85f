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

// Where a rank holds several stages: whether one layer less there, and one more at the rank with least work, helps.
std::string advice_of_ranks(const StageTable& table, const std::map<size_t, int64_t>& of_rank, int64_t most) {
  int64_t layers_ns = 0, layers = 0, least = most;
  for (const auto& [stage, work] : table.stages) {
    layers_ns += work.layers_ns;
    layers += work.layers;
  }
  for (const auto& [rank, ns] : of_rank) least = std::min(least, ns);
  if (layers == 0) return "give the slow rank fewer layers: --pipeline-layout";
  const int64_t layer = layers_ns / layers;
  if (static_cast<double>(std::max(most - layer, least + layer)) > 0.97 * static_cast<double>(most))
    return strprintf("no other split of %lld layers is better; more layers, or fewer stages",
                     static_cast<long long>(layers));
  return "give the slow rank fewer layers: --pipeline-layout";
}

// A rank's stages taken together, as what each rank has is compared.
StageWork sum_of_stages(const StageTable& table, size_t rank_index) {
  StageWork sum{.rank_index = rank_index};
  for (const auto& [stage, work] : table.stages) {
    if (work.rank_index != rank_index) continue;
    sum.actions_ns += work.actions_ns;
    sum.layers_ns += work.layers_ns;
    sum.embedding_ns += work.embedding_ns;
    sum.head_ns += work.head_ns;
    sum.layers += work.layers;
  }
  return sum;
}

std::string why_slow(const StageTable& table, const std::map<size_t, int64_t>& of_rank, const StageWork& slow) {
  int most_layers = 0;
  for (const auto& [rank, ns] : of_rank)
    if (rank != slow.rank_index) most_layers = std::max(most_layers, sum_of_stages(table, rank).layers);
  if (slow.head_ns > 0 && slow.layers <= most_layers)
    return strprintf(", for it has the head (%s of its work)",
                     format_percent(static_cast<double>(slow.head_ns) / static_cast<double>(slow.actions_ns)).c_str());
  if (slow.layers > 0) return strprintf(", with %d layer%s", slow.layers, slow.layers == 1 ? "" : "s");
  return "";
}

// "stage 3 (rank 3)", or of several stages "rank 3 (stages 3, 7)".
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
  const StageWork work = sum_of_stages(table, slow->second.rank_index);
  const bool one_each = of_rank.size() == table.stages.size();
  Insight out{.rule = "stage balance", .share = share, .text = {}, .advice = {}};
  out.text = strprintf("%s works %.2f times the mean of the %s%s; the others wait for it",
                       name_of_slow(in, table, work.rank_index).c_str(), static_cast<double>(most) / mean,
                       one_each ? "stages" : "ranks", why_slow(table, of_rank, work).c_str());
  out.advice = one_each ? advice_of(table, work.head_ns > 0) : advice_of_ranks(table, of_rank, most);
  const RankTrace& trace = in.store.trace(work.rank_index);
  for (uint32_t i = 0; i < trace.events.size() && !out.event; ++i)
    if (trace.events[i].kind == EventKind::kCompute && trace.events[i].stage == slow->first &&
        in.window.has(trace.events[i], in.store.clock()))
      out.event = EventRef{work.rank_index, i};
  return out;
}

}  // namespace ranklab::viz
