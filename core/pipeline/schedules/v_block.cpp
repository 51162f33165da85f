#include "core/pipeline/schedules/v_block.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.h"
#include "core/pipeline/schedules/placement.h"
#include "core/pipeline/schedules/weight_placement.h"

namespace ranklab {
namespace {

constexpr int kInterval = 6;
constexpr int kTrialCells = 1 << 15;  // limit of one trial

using Turns = std::array<int, 3>;  // idle cells between the four legs

// When the four parts of microbatch 0 start on a rank: F down, F up, B down, B up.
std::array<int, 4> starts(const VBlock& block, const Turns& turns, int rank, int p) {
  const int last = p - 1;
  const int up = block.forward_down * last + 1 + turns[0];
  const int back = up + block.forward_up * last + 1 + turns[1];
  const int back_up = back + block.backward_down * last + 1 + turns[2];
  return {block.forward_down * rank, up + block.forward_up * (last - rank), back + block.backward_down * rank,
          back_up + block.backward_up * (last - rank)};
}

bool repeats(const VBlock& block, const Turns& turns, int p) {
  for (int rank = 0; rank < std::min(p, kInterval); ++rank) {
    std::set<int> cells;
    for (const int start : starts(block, turns, rank, p)) cells.insert(start % kInterval);
    if (cells.size() < 4) return false;
  }
  return true;
}

Schedule unrolled(const std::string& name, const ScheduleRequest& request, const VBlock& block, const Turns& turns) {
  const int p = request.num_ranks;
  Schedule schedule = v_shaped(name, request);
  for (int rank = 0; rank < p; ++rank) {
    const std::array<int, 4> first = starts(block, turns, rank, p);
    const int upper = 2 * p - 1 - rank;
    std::vector<std::pair<int, Action>> cells;
    for (int i = 0; i < request.num_microbatches; ++i) {
      const std::array<Action, 4> parts = {forward(rank, i), forward(upper, i), input_grad(upper, i),
                                           input_grad(rank, i)};
      for (size_t part = 0; part < parts.size(); ++part) cells.emplace_back(first[part] + kInterval * i, parts[part]);
    }
    std::sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [cell, action] : cells) schedule.ranks[static_cast<size_t>(rank)].push_back(action);
  }
  return schedule;
}

struct Candidate {
  Turns turns;
  double makespan = 0;
};

}  // namespace

Schedule squeezed_v(std::string name, const ScheduleRequest& request, const ScheduleCosts& costs, const VBlock& block,
                    int memory_limit) {
  const WeightPlacement rules = {.memory_limit = static_cast<double>(memory_limit), .patience = 0};
  ScheduleRequest trial = request;
  trial.num_microbatches = std::min(request.num_microbatches, std::max(4, kTrialCells / (2 * request.num_ranks)));
  std::vector<Candidate> candidates;
  for (int code = 0; code < kInterval * kInterval * kInterval; ++code) {
    const Turns turns = {code / (kInterval * kInterval), code / kInterval % kInterval, code % kInterval};
    if (!repeats(block, turns, request.num_ranks)) continue;
    const PlacedWeights placed = place_weight_grads(unrolled(name, trial, block, turns), costs, rules);
    if (placed.within_limit) candidates.push_back({turns, placed.makespan});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.makespan < b.makespan; });
  for (const Candidate& candidate : candidates) {
    PlacedWeights placed = place_weight_grads(unrolled(name, request, block, candidate.turns), costs, rules);
    if (placed.within_limit) return std::move(placed.schedule);
  }
  throw Error(ErrorKind::kInternal,
              {.where = "schedule " + name,
               .what = "no order fits the memory limit",
               .got = std::to_string(request.num_ranks) + " ranks, " + std::to_string(memory_limit) + " activations"});
}

}  // namespace ranklab
