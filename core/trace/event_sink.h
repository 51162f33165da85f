// Receives recorded events in addition to the recorder's own storage. Torch-free.
#pragma once
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

// Shows events to viewers while the run goes on (core/live/live_feed.h). Thread rule: called on the rank's own thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // `so_far` provides the rank's label, groups and names; its events are not read.
  virtual void push(const RankTrace& so_far, const Event& event, std::vector<double> array) = 0;
};

}  // namespace ranklab
