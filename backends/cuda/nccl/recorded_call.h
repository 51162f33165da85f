// A collective inside of a capture: not under way, but a part of the graph, whose every launch runs it. Its stream
// joins the capture and is waited for within it. The watchdog sees the graph's launches instead (stream_graph.cpp), and
// there are no times of a call by itself. NCCL's side: collectives may be captured; every member records the same ones.
// Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <memory>

#include "backends/cuda/nccl/nccl_comm.h"
#include "core/comm/call_timing.h"
#include "core/comm/communicator.h"

namespace ranklab {

// Whether what is launched on the current stream is recorded.
bool captures_now();

// start() launches the call on the communicator's stream, which is then the current one. The tensors live until wait():
// after it the capture's own order keeps others from their memory. Throws kEnvironment for messages and barriers, in
// which the host takes part.
WorkPtr record_call(NcclComm& comm, Call call, const CallTimes& times, const std::function<void()>& start);

}  // namespace ranklab
