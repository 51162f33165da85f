#include "core/plan/repeated_passes.h"

#include <algorithm>
#include <iterator>

namespace ranklab {
namespace {

// Selects the passes of one kind that are recorded: the first, the second (which is repeated), and the last.
void add_ends(const std::vector<int>& order, std::set<int>& run) {
  if (order.empty()) return;
  run.insert(order.front());
  run.insert(order[std::min<size_t>(1, order.size() - 1)]);
  run.insert(order.back());
}

}  // namespace

RepeatedPasses::RepeatedPasses(const Schedule& schedule, int pp_rank, bool all) {
  size_t most = 0;
  for (const int stage : schedule.stages_of(pp_rank)) {
    std::map<ActionKind, std::vector<int>> order;
    for (const Action& a : schedule.ranks[static_cast<size_t>(pp_rank)]) {
      if (a.has_forward() && a.stage == stage) order[ActionKind::kF].push_back(a.microbatch);
      if (a.has_input_grad() && a.backward_stage() == stage)
        order[a.has_weight_grad() ? ActionKind::kBW : ActionKind::kB].push_back(a.backward_microbatch());
      if (a.kind == ActionKind::kW && a.stage == stage) order[ActionKind::kW].push_back(a.microbatch);
    }
    Stage& own = stages_.emplace_back(Stage{.forwards = order[ActionKind::kF], .run = {}});
    for (const auto& [kind, passes] : order) {
      add_ends(passes, own.run);
      if (all) own.run.insert(passes.begin(), passes.end());
    }
    most = std::max(most, own.run.size());
  }
  // The optimizer is given one number of microbatches for all stages, so every stage runs the same number.
  for (Stage& stage : stages_)
    for (size_t i = 0; i < stage.forwards.size() && stage.run.size() < most; ++i) stage.run.insert(stage.forwards[i]);
  count_ = static_cast<int>(most) * schedule.num_chains();
}

bool RepeatedPasses::runs(int local_stage, int microbatch) const {
  return stages_[static_cast<size_t>(local_stage)].run.contains(microbatch);
}

int RepeatedPasses::number_of(int local_stage, int microbatch) const {
  const std::set<int>& run = stages_[static_cast<size_t>(local_stage)].run;
  return static_cast<int>(std::distance(run.begin(), run.find(microbatch)));
}

int RepeatedPasses::forward_at(int local_stage, int nth) const {
  return stages_[static_cast<size_t>(local_stage)].forwards[static_cast<size_t>(nth)];
}

}  // namespace ranklab
