// Replays recorded kernels with one launch: everything that a rank's stream receives while a body runs is recorded once
// as a graph (on GPUs: CUDA graphs). A replay reads and writes the addresses, shapes and host numbers of the recording,
// so a body may depend only on the memory of its tensors; core/runtime/pipeline/replayed_pass.h ensures this for a
// microbatch. Cost: a graph keeps the memory of every tensor that its body made. Thread rule: its rank's thread, where
// it must also be destroyed.
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
  // Recomputes outputs() from the current contents of the tensors that the body read. RETURNS: an object that will know
  // the times, if only the device knows when it ran; else null.
  virtual std::shared_ptr<const CallTiming> replay() = 0;
  // The tensors that the body returned, at fixed addresses; they have no values before the first replay.
  virtual const GraphTensors& outputs() const = 0;
};

class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  // Runs the body normally, in the place where record() would record it. Libraries create their handles and workspaces
  // at first use, which cannot be recorded.
  virtual GraphTensors run(const GraphBody& body) = 0;
  // Records the body without computing anything. Throws kEnvironment if it does something that cannot be recorded.
  // `before`: a recording of this recorder, each replay of which is followed by one of this body. The body may read any
  // tensor that it made (also what autograd saved), and the two share their memory; null: there is none.
  virtual std::unique_ptr<RecordedGraph> record(const GraphBody& body, const RecordedGraph* before = nullptr) = 0;
};

}  // namespace ranklab
