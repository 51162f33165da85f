// The part of expert_load.h that people read as text.
#include <algorithm>

#include "core/base/text.h"
#include "viz/model/expert_load.h"

namespace ranklab::viz {
namespace {

std::string layer_line(const LayerLoad& load) {
  const LoadMeasures& m = load.measures;
  return strprintf("%5d %8zu %10.0f %10.1f %8.0f %8.0f %8.0f %8.0f %9.3f %7.3f %8.0f %6zu\n", load.layer,
                   load.tokens.size(), m.sum, m.ideal, m.min, m.p50, m.p95, m.max, m.max_ratio, m.cv, load.dropped,
                   m.dead.size());
}

// "  layer 3   peer 0: 512  peer 1: 498 ..."
std::string peer_line(const LayerLoad& load, int peers) {
  constexpr size_t kShown = 16;
  const std::vector<double> tokens = peer_tokens(load.tokens, peers);
  std::string out = strprintf("%5d ", load.layer);
  for (size_t i = 0; i < std::min(tokens.size(), kShown); ++i) out += strprintf(" %9.0f", tokens[i]);
  if (tokens.size() > kShown) out += strprintf("  ... %zu peers", tokens.size());
  return out + strprintf("   max/mean %.3f\n", measure_load(tokens).max_ratio);
}

}  // namespace

std::string name_experts(std::span<const int> experts, size_t most) {
  const std::string out = join(experts.first(std::min(experts.size(), most)), ", ");
  return experts.size() > most ? out + " and " + std::to_string(experts.size() - most) + " more" : out;
}

std::string expert_text(const ExpertTable& table) {
  if (table.empty())
    return "no routing events: train a mixture of experts, ./ranklab train --preset deepseek_v3_tiny --ep 8\n";
  std::string out = "tokens per expert";
  if (table.steps.size() == 1) out += strprintf(", step %d", table.steps[0]);
  if (table.steps.size() > 1) out += strprintf(", %zu steps together", table.steps.size());
  out += "\n";
  out += strprintf("%5s %8s %10s %10s %8s %8s %8s %8s %9s %7s %8s %6s\n", "layer", "experts", "tokens", "ideal", "min",
                   "p50", "p95", "max", "max/mean", "cv", "dropped", "dead");
  for (const LayerLoad& load : table.totals) out += layer_line(load);
  for (const LayerLoad& load : table.totals) {
    if (load.measures.dead.empty()) continue;
    out += strprintf("dead in layer %d: %s\n", load.layer, name_experts(load.measures.dead).c_str());
  }
  if (table.peers < 2) return out;
  out += strprintf("tokens per expert-parallel peer (%d)\n", table.peers);
  for (const LayerLoad& load : table.totals) out += peer_line(load, table.peers);
  return out;
}

}  // namespace ranklab::viz
