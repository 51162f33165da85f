#include "core/plan/repeated_passes.h"

#include <algorithm>
#include <iterator>

namespace ranklab {
namespace {

// A stage's passes of one kind, in schedule order; those that share their time with another pass are not like others.
struct Order {
  std::vector<int> all, alone, paired;

  void add(int microbatch, bool with_another) {
    all.push_back(microbatch);
    (with_another ? paired : alone).push_back(microbatch);
  }
};

// Selects the passes of one kind that are recorded: the first, the second (which is repeated), and the last; and the
// first that is to be repeated of those that come later because they are paired, or because they are not.
void add_ends(const Order& order, std::set<int>& run) {
  if (order.all.empty()) return;
  run.insert(order.all.front());
  run.insert(order.all.back());
  for (const std::vector<int>* passes : {&order.alone, &order.paired}) {
    const auto first = std::ranges::find_if(*passes, [&](int microbatch) { return microbatch != order.all.front(); });
    if (first != passes->end()) run.insert(*first);
  }
}

}  // namespace

RepeatedPasses::RepeatedPasses(const Schedule& schedule, int pp_rank, bool pairs, bool all) {
  size_t most = 0;
  for (const int stage : schedule.stages_of(pp_rank)) {
    std::map<ActionKind, Order> orders;
    for (const Action& a : schedule.ranks[static_cast<size_t>(pp_rank)]) {
      const bool paired = pairs && a.kind == ActionKind::kFBW;
      if (a.has_forward() && a.stage == stage) orders[ActionKind::kF].add(a.microbatch, paired);
      if (a.has_input_grad() && a.backward_stage() == stage)
        orders[a.has_weight_grad() ? ActionKind::kBW : ActionKind::kB].add(a.backward_microbatch(), paired);
      if (a.kind == ActionKind::kW && a.stage == stage) orders[ActionKind::kW].add(a.microbatch, false);
    }
    Stage& own = stages_.emplace_back(Stage{.forwards = orders[ActionKind::kF].all, .run = {}});
    for (const auto& [kind, order] : orders) {
      add_ends(order, own.run);
      if (all) own.run.insert(order.all.begin(), order.all.end());
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
