// Recognizes waits for the keys and values of other context-parallel ranks, or for their gradients. Thread rule: pure.
#pragma once
#include "viz/model/insights/insight.h"

namespace ranklab::viz {

// Whether the rank waits for such a call because a peer is late, not for the transfer itself.
inline bool waits_for_attention(const InsightInput& in, size_t rank, const IdleInterval& idle) {
  if (idle.event == kNoEvent || (idle.cause != BubbleCause::kDependency && idle.cause != BubbleCause::kStraggler))
    return false;
  const Event& event = in.store.event({rank, idle.event});
  const bool between_parts = event.axis == Axis::kCp || event.axis == Axis::kCpRing;
  return between_parts && (event.purpose == Purpose::kKeyValue || event.purpose == Purpose::kKeyValueGrad);
}

}  // namespace ranklab::viz
