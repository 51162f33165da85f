// CUDA graphs for a rank: records what a body launches on a stream of the recorder, with the graph's tensors in a
// memory pool of their own, as torch.cuda.graph does. The restrictions of a capture apply only to the recording thread,
// so the watchdog can still query other calls. Collectives within the body become part of the graph
// (nccl/recorded_call.h); the watchdog follows the graph's launches. Replays are launched on the rank's stream; their
// times come from two events around them. Thread rule: as core/comm/graph_recorder.h.
#pragma once
#include <memory>

#include "backends/cuda/nccl/nccl_context.h"
#include "core/comm/graph_recorder.h"

namespace ranklab {

std::shared_ptr<GraphRecorder> make_stream_recorder(NcclContextPtr context);

}  // namespace ranklab
