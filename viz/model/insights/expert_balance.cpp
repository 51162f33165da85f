#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "viz/model/insights/insight.h"
#include "viz/model/tables/expert_load.h"

namespace ranklab::viz {
// How long the expert-parallel rank with the most work makes its peers wait: in each layer and step, its work beyond
// the mean.
std::optional<Insight> expert_balance(const InsightInput& in) {
  constexpr double kRatio = 1.5, kShare = 0.02;
  const ExpertTable table = expert_table(in.store, in.window);
  if (table.empty() || table.peers < 2) return {};
  const LayerLoad* worst = nullptr;
  double excess = 0, sum = 0;
  for (const LayerLoad& load : table.totals) {
    const std::vector<double> peers = peer_tokens(load.tokens, table.peers);
    const LoadMeasures measures = measure_load(peers);
    excess += measures.max_excess;
    sum += measures.ideal;
    if (worst == nullptr || measures.max_ratio > measure_load(peer_tokens(worst->tokens, table.peers)).max_ratio)
      worst = &load;
  }
  if (worst == nullptr || sum <= 0) return {};
  const double ratio = measure_load(peer_tokens(worst->tokens, table.peers)).max_ratio;
  if (ratio < kRatio) return {};
  // The experts' share of the time, if modules were recorded.
  int64_t experts_ns = 0;
  for (const RankTrace& trace : in.store.traces()) {
    for (const Event& event : trace.events)
      if (event.kind == EventKind::kModule && in.window.has(event, in.store.clock()) &&
          trace.names[event.name].find(".experts") != std::string::npos)
        experts_ns += std::max<int64_t>(0, end_ns(event, in.store.clock()) - begin_ns(event, in.store.clock()));
  }
  const double experts = static_cast<double>(experts_ns) / static_cast<double>(in.bubbles.all.total_ns);
  const double share = experts * excess / sum;
  if (experts_ns > 0 && share < kShare) return {};
  const auto fullest = std::max_element(worst->tokens.begin(), worst->tokens.end());
  Insight out{.rule = "expert balance", .share = share, .text = {}, .advice = {}};
  out.text = strprintf(
      "experts are loaded unevenly: in layer %d one rank computes %.1f times the mean, expert %d alone %.1f "
      "times its share",
      worst->layer, ratio, static_cast<int>(fullest - worst->tokens.begin()), worst->measures.max_ratio);
  out.advice =
      "try --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.01, or a bias "
      "(--moe-router-enable-expert-bias)";
  return out;
}

}  // namespace ranklab::viz
