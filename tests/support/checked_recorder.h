// A stand-in on the host for a device's graph recorder: a replay runs the recorded body again, as it was captured, and
// copies its results to the outputs of the recording. What a graph would get wrong, it also gets wrong, or throws:
// numbers that the body's closure captured keep the values of the recording; outputs are NaN until the first replay. A
// body throws if it calls another operator or collective than in the recording, uses another host number or another
// tensor from outside, reads a tensor's value, or sends a message. Thread rule: as graph_recorder.h; counts are any
// thread's.
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

// Wraps a world so that it has Capability::kRecordedPasses and such a recorder for each rank.
std::unique_ptr<World> with_checked_recorder(std::unique_ptr<World> inner, std::shared_ptr<RecorderCounts> counts);

}  // namespace ranklab
