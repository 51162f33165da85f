#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "viz/model/insights/insight.h"
#include "viz/model/insights/stage_work.h"
#include "viz/model/time_text.h"

namespace ranklab::viz {
namespace {

// Consecutive layers to stages with the least work in the fullest stage; each stage has one layer or more. `first` and
// `last`: the work of the embedding and of the head, in layers.
std::vector<int> balanced_layers(int layers, int stages, double first, double last) {
  const auto fits = [&](double most, std::vector<int>& out) {
    out.clear();
    int left = layers;
    for (int s = 0; s < stages; ++s) {
      const double extra = (s == 0 ? first : 0) + (s == stages - 1 ? last : 0);
      const int room = std::max(1, static_cast<int>(most - extra + 1e-9));
      const int take = std::min(room, left - (stages - 1 - s));
      out.push_back(std::max(take, 1));
      left -= out.back();
    }
    return left == 0;
  };
  std::vector<int> best;
  for (double most = 1; most <= layers + first + last + 1; most += 0.125)
    if (fits(most, best)) break;
  return best;
}

double fullest(const std::vector<int>& layers, double first, double last) {
  double most = 0;
  for (size_t s = 0; s < layers.size(); ++s)
    most = std::max(most, layers[s] + (s == 0 ? first : 0) + (s + 1 == layers.size() ? last : 0));
  return most;
}

std::string advice_of(const StageTable& table) {
  int64_t layers_ns = 0, embedding_ns = 0, head_ns = 0;
  int layers = 0;
  std::vector<int> now;
  for (const auto& [stage, work] : table.stages) {
    layers_ns += work.layers_ns;
    embedding_ns += work.embedding_ns;
    head_ns += work.head_ns;
    layers += work.layers;
    now.push_back(work.layers);
  }
  const int stages = static_cast<int>(table.stages.size());
  if (layers < stages || layers_ns <= 0) return "give the slow stage fewer layers: --pipeline-layout";
  const double each = static_cast<double>(layers_ns) / layers;
  const double first = static_cast<double>(embedding_ns) / each, last = static_cast<double>(head_ns) / each;
  const std::vector<int> better = balanced_layers(layers, stages, first, last);
  if (better.empty() || fullest(better, first, last) > 0.97 * fullest(now, first, last))
    return strprintf(
        "no other split of %d layers is better: the head alone is %.1f layers; more layers, or fewer stages", layers,
        last);
  return "try --pipeline-layout " + join(std::span<const int>(better), ",");
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
  out.advice = one_each ? advice_of(table) : "give the slow stage fewer layers: --pipeline-layout";
  const RankTrace& trace = in.store.trace(work.rank_index);
  for (uint32_t i = 0; i < trace.events.size() && !out.event; ++i)
    if (trace.events[i].kind == EventKind::kCompute && trace.events[i].stage == slow->first &&
        in.window.has(trace.events[i], in.store.clock()))
      out.event = EventRef{work.rank_index, i};
  return out;
}

}  // namespace ranklab::viz
