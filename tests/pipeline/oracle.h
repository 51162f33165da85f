// An independent, plain definition of a schedule: a node for each action, an edge for each "must come before", counting
// for completeness. The verifier and the simulator are compared with it.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

class ScheduleOracle {
 public:
  explicit ScheduleOracle(const Schedule& schedule) : schedule_(schedule) {
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      for (const Action& action : schedule.ranks[static_cast<size_t>(rank)]) add(rank, action);
    }
    for (int node = 0; node < static_cast<int>(actions_.size()); ++node) connect(node);
  }

  bool complete() const {
    size_t wanted = 0;
    for (int stage = 0; stage < schedule_.num_stages(); ++stage) {
      for (int microbatch = 0; microbatch < schedule_.num_microbatches; ++microbatch) {
        if (!schedule_.passes(stage, microbatch)) continue;
        for (const char part : {'F', 'B', 'W'}) {
          if (!makers_.contains({part, stage, microbatch})) return false;
          ++wanted;
        }
      }
    }
    return right_place_ && once_ && makers_.size() == wanted;
  }
  bool acyclic() const { return order().size() == actions_.size(); }
  bool legal() const { return complete() && acyclic(); }

  int node(int rank, int index) const { return first_node_[static_cast<size_t>(rank)] + index; }

  // The end of the last action: the longest path through durations and edges between ranks that cost c. `late` is a
  // node that takes `extra` longer.
  double end(const std::vector<double>& durations, double c, int late = -1, double extra = 0) const {
    std::vector<double> ends(actions_.size(), 0);
    double last = 0;
    for (const int node : order()) {
      double begin = 0;
      for (const int before : needs_[static_cast<size_t>(node)]) {
        const bool message = ranks_[static_cast<size_t>(before)] != ranks_[static_cast<size_t>(node)];
        begin = std::max(begin, ends[static_cast<size_t>(before)] + (message ? c : 0));
      }
      const double own = durations[static_cast<size_t>(node)] + (node == late ? extra : 0);
      last = std::max(last, ends[static_cast<size_t>(node)] = begin + own);
    }
    return last;
  }

 private:
  using Work = std::tuple<char, int, int>;  // part, stage, microbatch

  void add(int rank, const Action& a) {
    const int node = static_cast<int>(actions_.size());
    while (static_cast<int>(first_node_.size()) <= rank) first_node_.push_back(node);
    actions_.push_back(a);
    ranks_.push_back(rank);
    if (a.has_forward()) make({'F', a.stage, a.microbatch}, node);
    if (a.has_input_grad()) make({'B', a.backward_stage(), a.backward_microbatch()}, node);
    if (a.has_weight_grad()) make({'W', a.backward_stage(), a.backward_microbatch()}, node);
  }
  void make(const Work& work, int node) {
    const int stage = std::get<1>(work);
    if (stage >= schedule_.num_stages() || schedule_.rank(stage) != ranks_[static_cast<size_t>(node)])
      right_place_ = false;
    if (!makers_.emplace(work, node).second) once_ = false;
  }

  void need(int node, const Work& work, bool own_is_fine = false) {
    const auto maker = makers_.find(work);
    if (maker == makers_.end() || (own_is_fine && maker->second == node)) return;
    needs_[static_cast<size_t>(node)].insert(maker->second);
  }
  void connect(int node) {
    needs_.resize(actions_.size());
    const Action& a = actions_[static_cast<size_t>(node)];
    if (node > 0 && ranks_[static_cast<size_t>(node)] == ranks_[static_cast<size_t>(node - 1)])
      needs_[static_cast<size_t>(node)].insert(node - 1);
    if (a.has_forward() && !schedule_.is_first(a.stage)) need(node, {'F', a.stage - 1, a.microbatch});
    const int stage = a.backward_stage(), microbatch = a.backward_microbatch();
    if (a.has_input_grad()) need(node, {'F', stage, microbatch});
    if (a.has_input_grad() && !schedule_.is_last(stage)) need(node, {'B', stage + 1, microbatch});
    if (a.has_weight_grad()) need(node, {'B', stage, microbatch}, /*own_is_fine=*/true);
  }

  // Kahn's algorithm; shorter than the nodes when there is a cycle.
  std::vector<int> order() const {
    std::vector<size_t> missing(actions_.size());
    std::vector<std::vector<int>> users(actions_.size());
    std::vector<int> ready;
    for (size_t node = 0; node < actions_.size(); ++node) {
      missing[node] = needs_[node].size();
      for (const int before : needs_[node]) users[static_cast<size_t>(before)].push_back(static_cast<int>(node));
      if (missing[node] == 0) ready.push_back(static_cast<int>(node));
    }
    for (size_t i = 0; i < ready.size(); ++i) {
      for (const int user : users[static_cast<size_t>(ready[i])])
        if (--missing[static_cast<size_t>(user)] == 0) ready.push_back(user);
    }
    return ready;
  }

  const Schedule& schedule_;
  std::vector<Action> actions_;
  std::vector<int> ranks_, first_node_;
  std::map<Work, int> makers_;
  std::vector<std::set<int>> needs_;
  bool right_place_ = true, once_ = true;
};

}  // namespace ranklab
