// A collective within a graph capture: it is not in flight, but becomes a part of the graph, and every launch of the
// graph runs it. Its stream joins the capture and is waited for within it. The watchdog sees the graph's launches
// instead (stream_graph.cpp), and the call has no times of its own. NCCL allows collectives to be captured, if every
// member records the same ones. Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <memory>

#include "backends/cuda/nccl/nccl_comm.h"
#include "core/comm/call_timing.h"
#include "core/comm/communicator.h"

namespace ranklab {

// Whether launches on the current stream are being captured.
bool captures_now();

// start() launches the call on the communicator's stream, which is then the current one. The tensors are kept until
// wait(); after that, the order of operations within the capture keeps others from using their memory. Throws
// kEnvironment for messages and barriers, in which the host takes part.
WorkPtr record_call(NcclComm& comm, Call call, const CallTimes& times, const std::function<void()>& start);

}  // namespace ranklab
