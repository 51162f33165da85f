#include "cli/trace/table_json.h"

#include <nlohmann/json.hpp>

#include "viz/model/store/selection.h"

namespace ranklab {

using nlohmann::ordered_json;

ordered_json split_json(const viz::TimeSplit& time) {
  ordered_json causes = ordered_json::object();
  for (size_t c = 0; c < viz::kBubbleCauses; ++c) {
    if (time.by_cause_ns[c] > 0) causes[std::string(name(static_cast<viz::BubbleCause>(c)))] = time.by_cause_ns[c];
  }
  return {{"total_ns", time.total_ns},
          {"busy_ns", time.busy_ns},
          {"bubble_ns", time.bubble_ns},
          {"exposed_ns", time.exposed_ns},
          {"bubble_of_total", time.bubble_of_total()},
          {"bubble_of_ideal", time.bubble_of_ideal()},
          {"by_cause_ns", causes}};
}

ordered_json insights_json(const viz::TraceStore& store, const std::vector<viz::Insight>& insights) {
  ordered_json out = ordered_json::array();
  for (const viz::Insight& one : insights) {
    out.push_back({{"rule", one.rule},
                   {"share", one.share},
                   {"text", one.text},
                   {"advice", one.advice},
                   {"select", one.event ? viz::selection_text(store, *one.event) : ""}});
  }
  return out;
}

ordered_json load_json(const viz::LayerLoad& load, int peers) {
  const viz::LoadMeasures& m = load.measures;
  ordered_json out = {{"layer", load.layer},
                      {"tokens", load.tokens},
                      {"ideal", m.ideal},
                      {"min", m.min},
                      {"p50", m.p50},
                      {"p75", m.p75},
                      {"p90", m.p90},
                      {"p95", m.p95},
                      {"max", m.max},
                      {"std", m.deviation},
                      {"cv", m.cv},
                      {"max_over_mean", m.max_ratio},
                      {"dropped", load.dropped},
                      {"dead", m.dead}};
  if (load.step >= 0) out["step"] = load.step;
  if (!load.bias.empty()) out["bias"] = load.bias;
  if (peers > 1) out["peer_tokens"] = viz::peer_tokens(load.tokens, peers);
  return out;
}

}  // namespace ranklab
