#include "core/pipeline/schedules/weight_placement.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>

namespace ranklab {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;

struct RankState {
  size_t forwards_end = 0;  // index after its last F
  size_t next = 0;          // index in its list of F and B
  double free = 0;
  double first = kUnknown;
  double held = 0;
  double idle = 0;      // total since its first action
  bool asleep = false;  // until the arrival time of its next input is known
  std::deque<Action> pending;
};

class Player {
 public:
  Player(Schedule skeleton, const ScheduleCosts& costs, const WeightPlacement& rules)
      : lists_(std::move(skeleton.ranks)), costs_(costs), rules_(rules), ranks_(lists_.size()) {
    out_.schedule = std::move(skeleton);
    out_.schedule.ranks.assign(lists_.size(), {});
    const auto cells = static_cast<size_t>(schedule().num_stages()) * static_cast<size_t>(schedule().num_microbatches);
    forward_.assign(cells, kUnknown);
    backward_.assign(cells, kUnknown);
    share_ = schedule().stage_share();
    for (size_t rank = 0; rank < lists_.size(); ++rank) {
      const auto last = std::ranges::find(lists_[rank].rbegin(), lists_[rank].rend(), ActionKind::kF, &Action::kind);
      ranks_[rank].forwards_end = static_cast<size_t>(lists_[rank].rend() - last);
    }
  }

  PlacedWeights run() {
    for (int rank = 0; rank < schedule().num_ranks(); ++rank) queue_.push({0, rank});
    while (!queue_.empty()) {
      const auto [time, rank] = queue_.top();
      queue_.pop();
      decide(rank, time);
    }
    for (const RankState& r : ranks_) out_.makespan = std::max(out_.makespan, r.free - r.first);
    return std::move(out_);
  }

 private:
  using Turn = std::pair<double, int>;  // time, rank

  const Schedule& schedule() const { return out_.schedule; }
  size_t cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * static_cast<size_t>(schedule().num_microbatches) +
           static_cast<size_t>(microbatch);
  }
  // When the result of another stage arrives; kUnknown while the action that produces it has not been placed.
  double arrival(const std::vector<double>& ends, int from_stage, int microbatch, int rank) const {
    return ends[cell(from_stage, microbatch)] + (schedule().rank(from_stage) == rank ? 0 : costs_.c);
  }
  double ready(const Action& a, int rank) const {
    if (a.kind == ActionKind::kF)
      return schedule().is_first(a.stage) ? 0 : arrival(forward_, a.stage - 1, a.microbatch, rank);
    const double own = forward_[cell(a.stage, a.microbatch)];
    return schedule().is_last(a.stage) ? own : std::max(own, arrival(backward_, a.stage + 1, a.microbatch, rank));
  }

  double patience_of(const RankState& r) const {
    return r.next < r.forwards_end ? rules_.patience : rules_.patience_at_end;
  }

  void decide(int rank, double time) {
    RankState& r = ranks_[static_cast<size_t>(rank)];
    const std::vector<Action>& list = lists_[static_cast<size_t>(rank)];
    if (r.next == list.size()) {
      while (!r.pending.empty()) weight_grad_now(rank, std::max(time, r.free));
      return;
    }
    const Action& next = list[r.next];
    const double at = ready(next, rank);
    if (next.kind == ActionKind::kF && rules_.memory_limit > 0 && r.held + share_ > rules_.memory_limit + kRounding) {
      if (!r.pending.empty()) return weight_grad_and_requeue(rank, time);
      out_.within_limit = false;
    }
    if (at <= time) {
      run_now(next, rank, time);
      ++r.next;
      return queue_.push({r.free, rank});
    }
    const double own_weight = costs_.w * share_;
    const double wait = at - time;
    const bool may_wait = wait < own_weight && r.idle + wait <= rules_.idle_allowed;
    if (!r.pending.empty() && !may_wait && wait >= patience_of(r) * own_weight)
      return weight_grad_and_requeue(rank, time);
    if (at == kUnknown) {
      if (r.first < kUnknown) r.idle += time - r.free;
      r.asleep = true;
      r.free = time;
    } else {
      queue_.push({at, rank});
    }
  }

  void weight_grad_and_requeue(int rank, double time) {
    weight_grad_now(rank, time);
    queue_.push({ranks_[static_cast<size_t>(rank)].free, rank});
  }
  void weight_grad_now(int rank, double time) {
    RankState& r = ranks_[static_cast<size_t>(rank)];
    const Action action = r.pending.front();
    r.pending.pop_front();
    r.held -= share_ * costs_.weight_grad_memory;
    r.free = time + costs_.w * share_;
    out_.schedule.ranks[static_cast<size_t>(rank)].push_back(action);
  }

  void run_now(const Action& action, int rank, double time) {
    RankState& r = ranks_[static_cast<size_t>(rank)];
    const bool is_forward = action.kind == ActionKind::kF;
    if (r.first < kUnknown) r.idle += time - r.free;
    r.first = std::min(r.first, time);
    r.free = time + share_ * (is_forward ? costs_.f : costs_.b);
    (is_forward ? forward_ : backward_)[cell(action.stage, action.microbatch)] = r.free;
    r.held += share_ * (is_forward ? 1 : costs_.weight_grad_memory - 1);
    if (!is_forward) r.pending.push_back(weight_grad(action.stage, action.microbatch));
    out_.schedule.ranks[static_cast<size_t>(rank)].push_back(action);
    wake_neighbour(action, time);
  }

  // Wakes the rank that may be waiting for this result and did not know when it would arrive.
  void wake_neighbour(const Action& action, double time) {
    const bool is_forward = action.kind == ActionKind::kF;
    if (is_forward ? schedule().is_last(action.stage) : schedule().is_first(action.stage)) return;
    const int neighbour = schedule().rank(is_forward ? action.stage + 1 : action.stage - 1);
    RankState& other = ranks_[static_cast<size_t>(neighbour)];
    if (!other.asleep) return;
    other.asleep = false;
    queue_.push({std::max(time, other.free), neighbour});
  }

  std::vector<std::vector<Action>> lists_;
  ScheduleCosts costs_;
  WeightPlacement rules_;
  std::vector<RankState> ranks_;
  double share_ = 1;
  std::vector<double> forward_, backward_;  // [stage, microbatch] -> end
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> queue_;
  PlacedWeights out_;
};

}  // namespace

PlacedWeights place_weight_grads(Schedule skeleton, const ScheduleCosts& costs, const WeightPlacement& rules) {
  return Player(std::move(skeleton), costs, rules).run();
}

}  // namespace ranklab
