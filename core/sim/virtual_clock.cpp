#include "core/sim/virtual_clock.h"

#include <algorithm>
#include <numeric>

namespace ranklab {

WaitSplit VirtualClock::wait_until(int64_t end_ns, int64_t transfer_ns, Axis axis) {
  const int64_t gap = end_ns - now_ns_;
  if (gap <= 0) return {};
  const WaitSplit split{.exposed_ns = std::min(gap, transfer_ns),
                        .peer_wait_ns = std::max<int64_t>(gap - transfer_ns, 0)};
  exposed_ns_[static_cast<size_t>(axis)] += split.exposed_ns;
  peer_wait_ns_ += split.peer_wait_ns;
  now_ns_ = end_ns;
  return split;
}

int64_t VirtualClock::exposed_total_ns() const {
  return std::accumulate(exposed_ns_.begin(), exposed_ns_.end(), int64_t{0});
}

}  // namespace ranklab
