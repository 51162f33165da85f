// ZB-2p (Qi et al., arXiv 2401.10241): the warm-up of each rank and the positions of its W are searched for the given
// costs, within twice the memory of 1F1B (2p activations on every rank; an activation between B and W counts as
// costs.weight_grad_memory). The search starts from the best of the warm-ups that let the first B pass upwards with
// little delay (eager()), and from those of ZB-H2 (start()); single ranks' are then changed by one as long as this
// shortens the schedule. W run where a rank would be idle (weight_placement.h). Bubbles reached on nine of the paper's
// settings, as fractions of the total: 0.0433, 0.0017, 0.0011, 0.0031, 0.0025, 0.0013, 0.0033, 0.0025, 0.0018, which is
// at or below the paper's own search. Lower bounds: (p-1)(F+B+2c) - (m-1)W for the first setting, and (p-1)(F+B+2c) -
// (2p-1)F for the last, because no more F fit before the first B. Cost: at most kSearchCells cells are timed.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/placement.h"
#include "core/pipeline/schedules/weight_placement.h"

namespace ranklab {
namespace {

constexpr int64_t kSearchCells = 2'000'000;

class Search {
 public:
  Search(const ScheduleRequest& request, const ScheduleCosts& costs)
      : request_(request),
        costs_(costs),
        most_(std::min(request.num_microbatches, 2 * request.num_ranks)),
        tries_left_(std::max<int64_t>(
            8, kSearchCells / (static_cast<int64_t>(request.num_ranks) * request.num_microbatches))) {}

  Schedule run() {
    constexpr int kDelays = 16;
    std::vector<int> best, last;
    double shortest = 0;
    for (int delay = 0; delay <= kDelays; ++delay) {
      const std::vector<int> warmup = eager(costs_.f * delay / kDelays);
      if (warmup == last) continue;  // with costs that are whole numbers, most delays give the same warm-up
      last = warmup;
      const double makespan = time_of(warmup, 0);
      if (!best.empty() && makespan >= shortest) continue;
      best = warmup;
      shortest = makespan;
    }
    for (const double patience : {0.0, 0.97, 0.5}) {
      climb(best, patience);
      for (const int extra : {0, -1}) climb(start(extra), patience);
    }
    return std::move(best_.schedule);
  }

 private:
  // ZB-H2's warm-up, plus or minus one.
  std::vector<int> start(int extra) const {
    std::vector<int> warmup;
    for (int rank = 0; rank < request_.num_ranks; ++rank)
      warmup.push_back(std::clamp(2 * (request_.num_ranks - rank) + extra, 1, most_));
    warmup.back() = 1;
    return warmup;
  }

  // As many F on each rank as end before its first B arrives, and one more where that delays this B by at most `delay`.
  // Such a delay uses up all idle time accumulated so far. The first B leaves the last rank immediately; with every
  // hop, a rank's wait grows by the time by which F + B and two messages exceed two F.
  std::vector<int> eager(double delay) const {
    std::vector<int> warmup(static_cast<size_t>(request_.num_ranks), 1);
    double begin = costs_.f;  // start of the first B, counted from the rank's first F
    for (size_t rank = warmup.size() - 1; rank-- > 0;) {
      const double comes = costs_.f + costs_.c + begin + costs_.b + costs_.c;
      const double before = std::floor(comes / costs_.f), more = (before + 1) * costs_.f - comes;
      const int count = static_cast<int>(std::min<double>(before + (more <= delay ? 1 : 0), most_));
      warmup[rank] = std::max(count, warmup[rank + 1]);
      begin = std::max(comes, warmup[rank] * costs_.f);
    }
    return warmup;
  }

  void climb(std::vector<int> warmup, double patience) {
    double makespan = time_of(warmup, patience);
    for (bool better = true; better && tries_left_ > 0;) {
      better = false;
      for (size_t rank = 0; rank < warmup.size(); ++rank) {
        for (const int change : {-1, 1}) {
          const int before = warmup[rank];
          warmup[rank] = std::clamp(before + change, rank + 1 < warmup.size() ? warmup[rank + 1] : 1,
                                    rank == 0 ? most_ : warmup[rank - 1]);  // a rank feeds the next one's warm-up
          const double changed = warmup[rank] == before ? makespan : time_of(warmup, patience);
          if (changed < makespan * (1 - 1e-12)) {
            makespan = changed;
            better = true;
          } else {
            warmup[rank] = before;
          }
        }
      }
    }
  }

  double time_of(const std::vector<int>& warmup, double patience) {
    if (tries_left_-- <= 0) return std::max(best_.makespan, 1.0) * 2;
    Schedule order = looped("zb-2p", request_, 1);
    for (int rank = 0; rank < request_.num_ranks; ++rank) {
      std::vector<Action>& actions = order.ranks[static_cast<size_t>(rank)];
      int next = 0;
      while (next < warmup[static_cast<size_t>(rank)]) actions.push_back(forward(rank, next++));
      for (int done = 0; done < request_.num_microbatches; ++done) {
        actions.push_back(input_grad(rank, done));
        if (next < request_.num_microbatches) actions.push_back(forward(rank, next++));
      }
    }
    PlacedWeights placed = place_weight_grads(
        std::move(order), costs_,
        {.memory_limit = 2.0 * request_.num_ranks, .patience = patience, .patience_at_end = patience});
    const double makespan = placed.makespan;
    if (best_.schedule.ranks.empty() || makespan < best_.makespan) best_ = std::move(placed);
    return makespan;
  }

  ScheduleRequest request_;
  ScheduleCosts costs_;
  int most_;
  int64_t tries_left_;
  PlacedWeights best_;
};

}  // namespace

Schedule make_zb_2p(const ScheduleRequest& request, const ScheduleCosts& costs) { return Search(request, costs).run(); }

}  // namespace ranklab
