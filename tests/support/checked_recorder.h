// A stand-in for a device's graph recorder, on the host: a replay runs the recorded body again, as it was captured, and
// copies what it makes to the recording's outputs. What a graph would get wrong it gets wrong as well or throws:
// numbers that the body's closure captured stay those of the recording; outputs are NaN until the first replay; a body
// that calls another operator or collective than in the recording, with another host number or another tensor from
// outside, that reads a tensor's value, or that sends a message, throws. Thread rule: as graph_recorder.h; counts are
// any thread's.
#pragma once
#include <atomic>
#include <memory>

#include "core/comm/graph_recorder.h"
#include "core/comm/world.h"

namespace ranklab {

struct RecorderCounts {
  std::atomic<int> warm_ups{0}, recordings{0}, replays{0}, live{0};
};

std::shared_ptr<GraphRecorder> make_checked_recorder(std::shared_ptr<RecorderCounts> counts);

// The world, with Capability::kRecordedPasses and such a recorder for each rank.
std::unique_ptr<World> with_checked_recorder(std::unique_ptr<World> inner, std::shared_ptr<RecorderCounts> counts);

}  // namespace ranklab
