// Brings all ranks' traces to rank 0 for one common file: threads of one process hand them over, and ranks that are
// processes send them. Each process counts wall time from its own start, on its host's clock. A few barriers, which all
// ranks leave at nearly the same moment, measure the offsets, and the traces are shifted to rank 0's wall clock (to
// within a fraction of a millisecond; virtual times need no shift). Cost: each trace is sent once. Thread rule: on each
// rank's thread.
#pragma once
#include <c10/core/Device.h>

#include <map>
#include <mutex>
#include <vector>

#include "core/comm/communicator.h"
#include "core/comm/world.h"
#include "core/trace/event.h"

namespace ranklab {

class TraceCollector {
 public:
  // The world must outlive this.
  explicit TraceCollector(World& world) : world_(world), processes_(world.local_ranks() < world.size()) {}

  // Collective: returns all ranks' traces by rank on global rank 0, and nothing elsewhere. `world` holds all ranks in
  // order.
  std::vector<RankTrace> collect(Communicator& world, c10::Device device, RankTrace mine);
  // Call after a rank's last step. Collective between processes; threads do not wait for each other here, since some
  // are still generating the sample.
  void leave(Communicator& world, c10::Device device, RankTrace mine);
  // The same for a rank that fails, when some of its peers may be gone: processes send the trace to rank 0 without
  // expecting an answer, with the times of their hosts' clocks.
  void leave_alone(RankTrace mine);
  // The traces that leave() collected, by rank, once all ranks of this process have ended.
  std::vector<RankTrace> take() { return taken(left_); }
  // The traces given to leave_alone(), as far as they have arrived; call in rank 0's process.
  std::vector<RankTrace> take_broken();

 private:
  using ByRank = std::map<int, RankTrace>;  // key: global rank
  void keep(ByRank& where, RankTrace trace);
  std::vector<RankTrace> taken(ByRank& from);

  World& world_;
  bool processes_;
  std::mutex mutex_;
  ByRank handed_over_, left_;  // a rank may leave before rank 0 has taken what it handed over just before
};

}  // namespace ranklab
