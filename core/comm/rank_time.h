// What a rank's virtual clock and op observer have counted: until now, or between two such moments. Torch-free. Thread
// rule: plain data.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/vocabulary.h"
#include "core/sim/kernel_shape.h"

namespace ranklab {

struct RankTime {
  int64_t begin_ns = 0, end_ns = 0;
  int64_t compute_ns = 0;
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns{};
  int64_t waited_ns = 0;  // waiting for a peer, or for earlier collectives on the same stream
  double flops = 0;       // of GEMMs and attention, without recomputation
  KernelTimes kernel_times{};

  // The difference between this and `before`, from the end of `before` to the end of this.
  RankTime since(const RankTime& before) const {
    RankTime spent = *this;
    spent.begin_ns = before.end_ns;
    spent.compute_ns -= before.compute_ns;
    for (size_t axis = 0; axis < exposed_ns.size(); ++axis) spent.exposed_ns[axis] -= before.exposed_ns[axis];
    spent.waited_ns -= before.waited_ns;
    spent.flops -= before.flops;
    spent.kernel_times = kernel_times.since(before.kernel_times);
    return spent;
  }
};

}  // namespace ranklab
