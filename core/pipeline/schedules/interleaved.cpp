// Interleaved 1F1B (Narayanan et al., arXiv 2104.04473): v stages per rank; a group of microbatches passes through one
// stage before the next one begins. The bubble is 1F1B's divided by v, at the cost of v times the messages and a little
// more memory. In the paper a group has as many microbatches as there are ranks; larger groups (Megatron-LM's
// --microbatch-group-size-per-virtual-pipeline-stage) give messages more time and need more memory, and any number of
// microbatches can be divided into them.
#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/schedules/placement.h"
#include "core/pipeline/schedules/warmup.h"

namespace ranklab {

bool is_interleaved_group(int group, int p, int m) {
  return group == m || (group >= p && group < m && (m % group == 0 || m % group >= p));
}

namespace {

int fewest(int p, int m) {
  int group = std::min(p, m);
  while (!is_interleaved_group(group, p, m)) ++group;
  return group;
}

int group_size(const ScheduleRequest& r) {
  const int p = r.num_ranks, m = r.num_microbatches, group = r.group_size;
  if (group == 0) return fewest(p, m);
  int below = std::min(group, m), above = std::max(group, fewest(p, m));  // the nearest legal ones
  while (below > 0 && !is_interleaved_group(below, p, m)) --below;
  while (above < m && !is_interleaved_group(above, p, m)) ++above;
  RANKLAB_CHECK(group > 0 && below == group, ErrorKind::kInvalidArgument, .where = "schedule interleaved-1f1b",
                .what = "a group of microbatches, or the last one, has fewer than there are ranks, or more than a step",
                .got = "groups of " + std::to_string(group) + ", " + std::to_string(m) + " microbatches, " +
                       std::to_string(p) + " ranks",
                .want = "groups of " + (below <= 0  ? std::to_string(above)
                                        : above > m ? std::to_string(below)
                                                    : std::to_string(below) + " or " + std::to_string(above)),
                .fix = "change --microbatch-group-size-per-virtual-pipeline-stage, or leave it out");
  return group;
}

// The order in which a rank's forwards (or backwards) run: microbatch and stage, counted among the rank's own.
struct Turn {
  int microbatch;
  int chunk;
};
std::vector<Turn> turns(int m, int v, int group) {
  std::vector<Turn> all;
  for (int begin = 0; begin < m; begin += group)
    for (int chunk = 0; chunk < v; ++chunk)
      for (int i = begin; i < std::min(begin + group, m); ++i) all.push_back({i, chunk});
  return all;
}

}  // namespace

Schedule make_interleaved_1f1b(const ScheduleRequest& request, const ScheduleCosts& /*costs*/) {
  const int p = request.num_ranks, m = request.num_microbatches, v = request.num_chunks;
  Schedule schedule = looped("interleaved-1f1b", request, v);
  const int group = group_size(request), total = m * v;
  const std::vector<Turn> order = turns(m, v, group);
  const auto at = [&](int k) { return order[static_cast<size_t>(k)]; };
  for (int rank = 0; rank < p; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    const int warmup = std::min(v == 1 ? one_stage_warmup(request, rank) : 2 * (p - rank - 1) + (v - 1) * group, total);
    int next = 0;
    const auto push_forward = [&] {
      const Turn turn = at(next++);
      actions.push_back(forward(turn.chunk * p + rank, turn.microbatch));
    };
    while (next < warmup) push_forward();
    for (int done = 0; done < total; ++done) {
      if (next < total) push_forward();
      const Turn turn = at(done);
      actions.push_back(backward((v - 1 - turn.chunk) * p + rank, turn.microbatch));
    }
  }
  return schedule;
}

}  // namespace ranklab
