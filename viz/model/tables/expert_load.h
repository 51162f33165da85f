// Expert load balance: tokens per expert for each layer and step, measures of it (below), tokens of each
// expert-parallel peer, biases of the router. Computed from the events of core/trace/routing_event.h. A layer's tokens
// in a step are those of its "expert load" event (for the whole batch; every rank of its stage records the same one),
// or, if there is none yet, the sum of the "routing" events of all ranks. "Tokens" are assignments: a token counts once
// for each of its k experts; dropped ones are excluded. Measures of one layer, as defined elsewhere:
//   ideal = sum / experts, ratio = tokens / ideal (0: a dead expert)             NeMo Automodel PR 1232
//   min, p50, p75, p90, p95, max, standard deviation (of all experts: / n)       Megatron-LM issue 2398
//   cv = standard deviation / mean                                              torchtitan PR 3433
//   max/mean (how long the slowest peer makes the others wait), max - mean       Megatron-LM PR 6468
// Percentiles interpolate linearly between the sorted values, like numpy's. Cost: O(events + loads x experts log
// experts). Thread rule: pure.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct LoadMeasures {
  double sum = 0;
  double ideal = 0;  // the mean
  double min = 0, p50 = 0, p75 = 0, p90 = 0, p95 = 0, max = 0;
  double deviation = 0;
  double cv = 0;          // deviation / mean; 0 without tokens
  double max_ratio = 0;   // max / mean; 0 without tokens
  std::vector<int> dead;  // experts without a token, if others have some
  double max_excess = 0;  // max - mean
  double ratio(double tokens) const { return ideal > 0 ? tokens / ideal : 0; }
};
LoadMeasures measure_load(std::span<const double> tokens);

// One layer in one step, or (step -1) in all steps of a window.
struct LayerLoad {
  int layer = 0;
  int step = -1;
  std::vector<double> tokens;  // [expert]
  double dropped = 0;
  std::vector<double> bias;  // [expert]; empty without a bias; over several steps the last one
  LoadMeasures measures;
};

struct ExpertTable {
  std::vector<LayerLoad> loads;    // sorted by step, then layer
  std::vector<LayerLoad> totals;   // over all steps, sorted by layer
  std::vector<int> layers, steps;  // `steps` is empty if the trace has none
  std::map<int, double> aux_loss;  // by step, if the run has recorded one
  int num_experts = 0;             // the largest number of any layer
  int peers = 1;                   // expert-parallel size: peer i holds the i-th part of the experts

  bool empty() const { return loads.empty(); }
  const LayerLoad* find(int step, int layer) const;  // step -1: the total; null if there is none
};
ExpertTable expert_table(const TraceStore& store, const Window& window);

// Tokens sent to each peer.
std::vector<double> peer_tokens(std::span<const double> tokens, int peers);

// The load of one layer over the steps.
struct LoadHistory {
  std::vector<double> step, max_ratio, cv, dropped;
  std::vector<std::vector<double>> bias;  // [expert][i]: at bias_step[i]
  std::vector<double> bias_step;
};
LoadHistory load_history(const ExpertTable& table, int layer);

// "3, 7 and 12 more"
std::string name_experts(std::span<const int> experts, size_t most = 12);
// One line per layer with its measures, over the whole window; then dead experts and the peers' tokens.
std::string expert_text(const ExpertTable& table);

}  // namespace ranklab::viz
