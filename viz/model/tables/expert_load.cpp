#include "viz/model/tables/expert_load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/trace/routing_event.h"

namespace ranklab::viz {
namespace {

// Limits the values of a damaged file so that sums stay finite.
constexpr double kMostTokens = 1e15;
constexpr std::string_view kAuxLoss = "moe/aux_loss";  // the engine's counter

double bounded(double number) { return number > 0 ? std::min(number, kMostTokens) : 0; }  // 0 for NaN

using Place = std::pair<int, int>;  // step, layer

void add_tokens(std::vector<double>& to, std::span<const double> tokens) {
  to.resize(std::max(to.size(), tokens.size()), 0.0);
  for (size_t i = 0; i < tokens.size(); ++i) to[i] += bounded(tokens[i]);
}

class LoadCollector {
 public:
  LoadCollector(const TraceStore& store, const Window& window) : store_(store), window_(window) {}

  void collect() {
    for (size_t rank = 0; rank < store_.traces().size(); ++rank) {
      const RankTrace& trace = store_.trace(rank);
      for (size_t i = 0; i < trace.names.size(); ++i) {
        if (trace.names[i] == kRoutingEvent || trace.names[i] == kExpertLoadEvent ||
            trace.names[i] == kExpertBiasEvent || trace.names[i] == kAuxLoss)
          wanted_.insert(static_cast<uint32_t>(i));
      }
      if (!wanted_.empty()) read_rank(rank);
      wanted_.clear();
    }
  }
  std::map<int, double> aux_loss() const { return aux_loss_; }
  std::vector<LayerLoad> take() {
    for (auto& [place, load] : routed_) loads_.try_emplace(place, std::move(load));  // if there is no total
    std::vector<LayerLoad> out;
    for (auto& [place, load] : loads_) {
      load.step = place.first;
      load.layer = place.second;
      if (const auto bias = bias_.find(place); bias != bias_.end()) load.bias = std::move(bias->second);
      load.measures = measure_load(load.tokens);
      out.push_back(std::move(load));
    }
    return out;
  }

 private:
  void read_rank(size_t rank) {
    const RankTrace& trace = store_.trace(rank);
    for (const Event& event : trace.events) {
      if (!wanted_.contains(event.name) || !window_.has(event, store_.clock())) continue;
      if (event.kind == EventKind::kCounter && trace.names[event.name] == kAuxLoss) aux_loss_[event.step] = event.value;
      if (event.kind != EventKind::kInstant) continue;
      const std::span<const double> numbers = store_.array(rank, event);
      if (numbers.empty()) continue;
      const Place place(event.step, event.tag);
      const std::string& name = trace.names[event.name];
      if (name == kExpertBiasEvent) {
        std::vector<double>& bias = bias_[place];
        bias.clear();
        for (const double one : numbers) bias.push_back(std::isfinite(one) ? one : 0);
        continue;
      }
      const bool whole = name == kExpertLoadEvent;
      LayerLoad& load = whole ? loads_[place] : routed_[place];
      if (whole && !load.tokens.empty()) continue;  // another rank has reported the same
      add_tokens(load.tokens, numbers);
      load.dropped += bounded(event.value);
    }
  }

  const TraceStore& store_;
  const Window& window_;
  std::set<uint32_t> wanted_;  // name ids of this rank
  std::map<Place, LayerLoad> loads_, routed_;
  std::map<Place, std::vector<double>> bias_;
  std::map<int, double> aux_loss_;
};

double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

int peers_of(const TraceStore& store) {
  for (const RankTrace& trace : store.traces()) {
    const std::vector<int>* group = group_of(trace, Axis::kEp);
    if (group != nullptr && !group->empty()) return static_cast<int>(group->size());
  }
  return 1;
}

// Steps are in ascending order, so the bias of the last step remains.
std::vector<LayerLoad> sum_steps(const std::vector<LayerLoad>& loads) {
  std::map<int, LayerLoad> of_layer;
  for (const LayerLoad& load : loads) {
    LayerLoad& total = of_layer[load.layer];
    total.layer = load.layer;
    add_tokens(total.tokens, load.tokens);
    total.dropped += load.dropped;
    if (!load.bias.empty()) total.bias = load.bias;
  }
  std::vector<LayerLoad> out;
  for (auto& [layer, total] : of_layer) {
    total.measures = measure_load(total.tokens);
    out.push_back(std::move(total));
  }
  return out;
}

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

LoadMeasures measure_load(std::span<const double> tokens) {
  LoadMeasures out;
  if (tokens.empty()) return out;
  std::vector<double> sorted(tokens.begin(), tokens.end());
  std::sort(sorted.begin(), sorted.end());
  for (const double one : sorted) out.sum += one;
  const auto n = static_cast<double>(sorted.size());
  out.ideal = out.sum / n;
  out.min = sorted.front();
  out.max = sorted.back();
  out.p50 = percentile(sorted, 0.50);
  out.p75 = percentile(sorted, 0.75);
  out.p90 = percentile(sorted, 0.90);
  out.p95 = percentile(sorted, 0.95);
  double squares = 0;
  for (const double one : sorted) squares += (one - out.ideal) * (one - out.ideal);
  out.deviation = std::sqrt(squares / n);
  out.max_excess = out.max - out.ideal;
  if (out.sum <= 0) return out;
  out.cv = out.deviation / out.ideal;
  out.max_ratio = out.max / out.ideal;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] == 0) out.dead.push_back(static_cast<int>(i));
  return out;
}

const LayerLoad* ExpertTable::find(int step, int layer) const {
  if (step < 0) {
    const auto at = std::lower_bound(totals.begin(), totals.end(), layer,
                                     [](const LayerLoad& load, int wanted) { return load.layer < wanted; });
    return at == totals.end() || at->layer != layer ? nullptr : &*at;
  }
  const auto at =
      std::lower_bound(loads.begin(), loads.end(), Place(step, layer),
                       [](const LayerLoad& load, const Place& place) { return Place(load.step, load.layer) < place; });
  return at == loads.end() || at->step != step || at->layer != layer ? nullptr : &*at;
}

ExpertTable expert_table(const TraceStore& store, const Window& window) {
  LoadCollector collector(store, window);
  collector.collect();
  ExpertTable table;
  table.loads = collector.take();
  table.aux_loss = collector.aux_loss();
  table.totals = sum_steps(table.loads);
  table.peers = peers_of(store);
  for (const LayerLoad& total : table.totals) {
    table.layers.push_back(total.layer);
    table.num_experts = std::max(table.num_experts, static_cast<int>(total.tokens.size()));
  }
  for (const LayerLoad& load : table.loads)
    if (load.step >= 0 && (table.steps.empty() || table.steps.back() != load.step)) table.steps.push_back(load.step);
  return table;
}

std::vector<double> peer_tokens(std::span<const double> tokens, int peers) {
  const auto count = static_cast<size_t>(std::max(peers, 1));
  std::vector<double> out;
  if (tokens.size() % count != 0) return out;  // the experts cannot be split evenly
  const size_t each = tokens.size() / count;
  for (size_t peer = 0; peer < count; ++peer) {
    double sum = 0;
    for (const double one : tokens.subspan(peer * each, each)) sum += one;
    out.push_back(sum);
  }
  return out;
}

LoadHistory load_history(const ExpertTable& table, int layer) {
  LoadHistory out;
  for (const int step : table.steps) {
    const LayerLoad* load = table.find(step, layer);
    if (load == nullptr) continue;
    out.step.push_back(step);
    out.max_ratio.push_back(load->measures.max_ratio);
    out.cv.push_back(load->measures.cv);
    out.dropped.push_back(load->dropped);
    if (load->bias.empty() || (!out.bias.empty() && out.bias.size() != load->bias.size())) continue;
    out.bias.resize(load->bias.size());
    out.bias_step.push_back(step);
    for (size_t expert = 0; expert < load->bias.size(); ++expert) out.bias[expert].push_back(load->bias[expert]);
  }
  return out;
}

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
