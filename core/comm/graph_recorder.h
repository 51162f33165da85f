// Replays recorded kernels with one launch: what a rank's stream is given while a body runs is recorded once as a graph
// (on GPUs: CUDA graphs). A replay reads and writes the addresses, shapes and host numbers of the recording, so a body
// may depend on nothing but the memory of its tensors: core/runtime/pipeline/replayed_pass.h holds that for a microbatch. Cost:
// a graph keeps the memory of every tensor that its body made. Thread rule: its rank's thread, where it is also
// destroyed.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "core/comm/call_timing.h"

namespace ranklab {

using GraphTensors = std::vector<at::Tensor>;  // some may be undefined
using GraphBody = std::function<GraphTensors()>;

class RecordedGraph {
 public:
  virtual ~RecordedGraph() = default;
  // Computes outputs() anew from what the tensors that the body read hold now. RETURNS: where only the device knows
  // when it ran, what will know it; else null.
  virtual std::shared_ptr<const CallTiming> replay() = 0;
  // What the body returned: at fixed addresses, and without numbers until the first replay.
  virtual const GraphTensors& outputs() const = 0;
};

class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  // Runs the body as it is, where record() would record it: libraries make their handles and workspaces there at first
  // use, which cannot be recorded.
  virtual GraphTensors run(const GraphBody& body) = 0;
  // Records the body, which computes nothing now. Throws kEnvironment where it does what cannot be recorded.
  virtual std::unique_ptr<RecordedGraph> record(const GraphBody& body) = 0;
};

}  // namespace ranklab
