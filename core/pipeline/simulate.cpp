#include "core/pipeline/simulate.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

class Simulator {
 public:
  Simulator(const Schedule& schedule, const PipelineTiming& timing) : schedule_(schedule), timing_(timing) {
    const auto cells = static_cast<size_t>(schedule.num_stages()) * static_cast<size_t>(schedule.num_microbatches);
    forward_.resize(cells);
    backward_.resize(cells);
    line_.ranks.resize(schedule.ranks.size());
    line_.idle.resize(schedule.ranks.size());
    binding_.resize(schedule.ranks.size());
    for (size_t r = 0; r < schedule.ranks.size(); ++r) line_.ranks[r].reserve(schedule.ranks[r].size());
  }

  PipelineTimeline run() {
    size_t left = 0;
    for (const auto& actions : schedule_.ranks) left += actions.size();
    // Visits ranks whose next action may have become ready; each is visited again when a neighbour finishes something.
    for (bool moved = true; left > 0 && moved;) {
      moved = false;
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
        while (step(rank)) {
          --left;
          moved = true;
        }
      }
    }
    RANKLAB_CHECK(left == 0, ErrorKind::kInvalidArgument, .where = "schedule " + schedule_.name,
                  .what = "the ranks wait for each other", .got = stuck(),
                  .fix = "ranklab schedule check shows the cycle");
    finish();
    return std::move(line_);
  }

 private:
  struct Input {
    ActionPlace from;
    double arrives = 0;
    bool message = false;
  };

  size_t cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * static_cast<size_t>(schedule_.num_microbatches) +
           static_cast<size_t>(microbatch);
  }
  const TimedAction& at(ActionPlace place) const {
    return line_.ranks[static_cast<size_t>(place.rank)][static_cast<size_t>(place.index)];
  }
  double duration(const Action& a) const {
    const StageCost& own = timing_.stages[static_cast<size_t>(a.stage)];
    switch (a.kind) {
      case ActionKind::kF:
        return own.f;
      case ActionKind::kB:
        return own.b;
      case ActionKind::kW:
        return own.w;
      case ActionKind::kBW:
        return own.whole_backward();
      case ActionKind::kFBW: {
        const StageCost& back = timing_.stages[static_cast<size_t>(a.back_stage)];
        return timing_.pair_factor * (own.f + back.whole_backward());
      }
    }
    return 0;
  }

  // Collects the inputs that the action needs; false when some of them have not been computed yet.
  bool inputs(const Action& a, int rank, std::vector<Input>& out) const {
    const auto need = [&](const std::vector<ActionPlace>& done, int stage, int microbatch) {
      const ActionPlace place = done[cell(stage, microbatch)];
      if (place.rank < 0) return false;
      const bool message = place.rank != rank;
      out.push_back({place, at(place).end + (message ? timing_.c : 0), message});
      return true;
    };
    if (a.has_forward() && !schedule_.is_first(a.stage) && !need(forward_, a.stage - 1, a.microbatch)) return false;
    const int stage = a.backward_stage(), microbatch = a.backward_microbatch();
    if (a.has_input_grad()) {
      if (!need(forward_, stage, microbatch)) return false;
      if (!schedule_.is_last(stage) && !need(backward_, stage + 1, microbatch)) return false;
    }
    return a.kind != ActionKind::kW || need(backward_, stage, microbatch);
  }

  bool step(int rank) {
    std::vector<TimedAction>& done = line_.ranks[static_cast<size_t>(rank)];
    const std::vector<Action>& actions = schedule_.ranks[static_cast<size_t>(rank)];
    if (done.size() == actions.size()) return false;
    const Action& action = actions[done.size()];
    needs_.clear();
    if (!inputs(action, rank, needs_)) return false;
    const double free = done.empty() ? 0 : done.back().end;
    TimedAction timed{.action = action, .begin = free};
    ActionPlace bound = {rank, static_cast<int>(done.size()) - 1};
    const Input* last = nullptr;
    for (const Input& input : needs_) {
      if (input.arrives <= timed.begin) continue;
      timed.begin = input.arrives;
      bound = input.from;
      last = &input;
    }
    if (last != nullptr) note_idle(rank, free, timed.begin, *last, done.empty());
    timed.end = timed.begin + duration(action);
    const ActionPlace place = {rank, static_cast<int>(done.size())};
    if (action.has_forward()) forward_[cell(action.stage, action.microbatch)] = place;
    if (action.has_input_grad()) backward_[cell(action.backward_stage(), action.backward_microbatch())] = place;
    done.push_back(timed);
    binding_[static_cast<size_t>(rank)].push_back(bound);
    order_.push_back(place);
    return true;
  }

  // The part of a wait during which the input was in flight counts as message time, the rest as waiting for a
  // dependency.
  void note_idle(int rank, double begin, double end, const Input& input, bool first) {
    std::vector<Idle>& list = line_.idle[static_cast<size_t>(rank)];
    const Action waited = at(input.from).action;
    const double computed = std::clamp(at(input.from).end, begin, end);
    const IdleCause cause = first ? IdleCause::kWarmUp : IdleCause::kDependency;
    if (first || !input.message) {
      list.push_back({cause, begin, end, input.from.rank, waited});
      return;
    }
    if (computed > begin) list.push_back({cause, begin, computed, input.from.rank, waited});
    if (end > computed) list.push_back({IdleCause::kMessage, computed, end, input.from.rank, waited});
  }

  void finish() {
    for (const auto& rank : line_.ranks) {
      double busy = 0;
      for (const TimedAction& timed : rank) {
        const double overlap = timed.action.kind == ActionKind::kFBW ? 1 / timing_.pair_factor : 1;
        busy += (timed.end - timed.begin) * overlap;
      }
      line_.ideal = std::max(line_.ideal, busy);
      if (rank.empty()) continue;
      line_.end = std::max(line_.end, rank.back().end);
      line_.makespan = std::max(line_.makespan, rank.back().end - rank.front().begin);
    }
    for (size_t r = 0; r < line_.ranks.size(); ++r) {
      const double end = line_.ranks[r].empty() ? 0 : line_.ranks[r].back().end;
      if (end < line_.end) line_.idle[r].push_back({IdleCause::kDrain, end, line_.end, -1, {}});
    }
    mark_critical();
    find_slack();
  }

  // Walks back from the action that ends last, always to what the action had to wait for.
  void mark_critical() {
    ActionPlace place;
    for (int r = 0; r < schedule_.num_ranks(); ++r) {
      const auto& rank = line_.ranks[static_cast<size_t>(r)];
      if (!rank.empty() && rank.back().end == line_.end) place = {r, static_cast<int>(rank.size()) - 1};
    }
    while (place.rank >= 0 && place.index >= 0) {
      line_.ranks[static_cast<size_t>(place.rank)][static_cast<size_t>(place.index)].critical = true;
      place = binding_[static_cast<size_t>(place.rank)][static_cast<size_t>(place.index)];
    }
  }

  // Latest possible ends, in reverse order of placement, because the inputs of an action were placed before it.
  void find_slack() {
    std::vector<std::vector<double>> latest(line_.ranks.size());
    for (size_t r = 0; r < latest.size(); ++r) latest[r].assign(line_.ranks[r].size(), line_.end);
    std::reverse(order_.begin(), order_.end());
    for (const ActionPlace place : order_) {
      TimedAction& timed = line_.ranks[static_cast<size_t>(place.rank)][static_cast<size_t>(place.index)];
      const double own = latest[static_cast<size_t>(place.rank)][static_cast<size_t>(place.index)];
      timed.slack = own - timed.end;
      const double begin = own - (timed.end - timed.begin);
      const auto lower = [&](ActionPlace from, double bound) {
        double& value = latest[static_cast<size_t>(from.rank)][static_cast<size_t>(from.index)];
        value = std::min(value, bound);
      };
      if (place.index > 0) lower({place.rank, place.index - 1}, begin);
      needs_.clear();
      inputs(timed.action, place.rank, needs_);
      for (const Input& input : needs_) lower(input.from, begin - (input.message ? timing_.c : 0));
    }
  }

  std::string stuck() const {
    std::vector<std::string> heads;
    for (size_t r = 0; r < line_.ranks.size(); ++r) {
      const size_t next = line_.ranks[r].size();
      if (heads.size() == 8) return join(heads, ", ") + ", ...";
      if (next < schedule_.ranks[r].size())
        heads.push_back("rank " + std::to_string(r) + " at " + to_text(schedule_.ranks[r][next]));
    }
    return join(heads, ", ");
  }

  const Schedule& schedule_;
  const PipelineTiming& timing_;
  std::vector<ActionPlace> forward_, backward_;    // [stage, microbatch] -> where it was computed
  std::vector<std::vector<ActionPlace>> binding_;  // the input or action that each action had to wait for last
  std::vector<ActionPlace> order_;
  std::vector<Input> needs_;
  PipelineTimeline line_;
};

}  // namespace

std::vector<StageCost> stage_costs(const Schedule& schedule, const ScheduleCosts& costs) {
  const double share = schedule.stage_share();
  return std::vector<StageCost>(schedule.rank_of_stage.size(),
                                {.f = costs.f * share, .b = costs.b * share, .w = costs.w * share});
}

PipelineTimeline simulate(const Schedule& schedule, const PipelineTiming& timing) {
  return Simulator(schedule, timing).run();
}

PipelineTimeline simulate(const Schedule& schedule, const ScheduleCosts& costs) {
  return simulate(schedule, {stage_costs(schedule, costs), costs.c, costs.pair_factor});
}

}  // namespace ranklab
