// CUDA graphs for a rank: what a body launches on a stream of the recorder's own, its tensors in memory of the graph's
// own, as torch.cuda.graph does it. Only the recording thread is held to what capture allows, so that the watchdog's
// queries of other calls go on. Collectives within are part of the graph (nccl/recorded_call.h); the watchdog follows
// its launches. Replays are launched on the rank's stream; their times are those of two events around
// them. Thread rule: as core/comm/graph_recorder.h.
#pragma once
#include <memory>

#include "backends/cuda/nccl/nccl_context.h"
#include "core/comm/graph_recorder.h"

namespace ranklab {

std::shared_ptr<GraphRecorder> make_stream_recorder(NcclContextPtr context);

}  // namespace ranklab
