// Moves the bytes of matched calls with Gloo's algorithms. Gloo's own reductions (ring, bcube) do not add in tree
// order, so reductions are built from moves: reduce_scatter = alltoallv of the parts + a local tree_reduce; all_reduce
// = the same on near-equal chunks + allgatherv. Results are bit-identical to the direct mover's. Gloo needs a thread of
// every member during a call: members that wait at once run their part themselves, async calls run on a CommThread.
// Messages are issued at both ends by the thread that matched them. Cost: all_reduce sends 2(n-1)/n S per rank and
// needs S of scratch. Thread rule: any thread; one seat belongs to one thread.
#pragma once
#include <memory>

#include "backends/cpu_sim/gloo_group.h"
#include "backends/cpu_sim/mover.h"

namespace ranklab::cpu_sim {

class GlooMover final : public Mover {
 public:
  explicit GlooMover(std::shared_ptr<GlooGroup> group) : group_(std::move(group)) {}
  void matched(Exchange& exchange) override;
  void complete(Exchange& exchange, int seat) override;
  bool poll(Exchange& exchange, int seat) override;
  int64_t wire_bytes(const Exchange& exchange, int seat) const override;
  bool needs_thread(const Call& call) const override { return !call.blocking; }

 private:
  std::shared_ptr<GlooGroup> group_;
};

}  // namespace ranklab::cpu_sim
