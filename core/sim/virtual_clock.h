// One rank's simulated time. The compute stream is a time that ops advance; communication streams (one per group) are
// kept by the communicator's observer, and waiting for one moves the compute stream to its end. The gap is the exposed
// part of that communication. Deterministic: no wall time enters. Thread rule: its rank's thread only.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/vocabulary.h"

namespace ranklab {

// How a gap on the compute stream is accounted.
struct WaitSplit {
  int64_t exposed_ns = 0;    // communication that compute did not hide
  int64_t peer_wait_ns = 0;  // waiting for a member that had not posted yet
};

class VirtualClock {
 public:
  int64_t now_ns() const { return now_ns_; }
  // The compute stream ran an op of this duration.
  void advance(int64_t duration_ns) {
    now_ns_ += duration_ns;
    compute_ns_ += duration_ns;
  }
  // The compute stream waits for something on `axis` that ends at end_ns (no effect if that is in the past). At most
  // `transfer_ns` of the gap counts as exposed communication, the rest as waiting for a peer.
  WaitSplit wait_until(int64_t end_ns, int64_t transfer_ns, Axis axis);

  int64_t compute_ns() const { return compute_ns_; }
  int64_t exposed_ns(Axis axis) const { return exposed_ns_[static_cast<size_t>(axis)]; }
  const std::array<int64_t, static_cast<size_t>(Axis::kCount)>& exposed_ns() const { return exposed_ns_; }
  int64_t exposed_total_ns() const;
  int64_t peer_wait_ns() const { return peer_wait_ns_; }

 private:
  int64_t now_ns_ = 0;
  int64_t compute_ns_ = 0;
  int64_t peer_wait_ns_ = 0;
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns_{};
};

}  // namespace ranklab
