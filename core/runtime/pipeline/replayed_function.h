// A function of tensors that is recorded as a graph (core/comm/graph_recorder.h) and replayed, like users of
// torch.cuda.graph do: a few calls run normally, then one is recorded, and from then on each call copies its inputs to
// where the recording read them and replays the graph. Inputs of another shape or type start over, and the old
// recording is freed. The function may read its inputs and tensors that do not move (parameters); numbers from the host
// keep the values they had in the recording. Cost: a copy of the inputs per call, one set of inputs, and all memory
// that the function uses, which is never returned. Thread rule: its rank's thread, where it must also be destroyed.
#pragma once
#include <functional>
#include <memory>

#include "core/comm/graph_recorder.h"
#include "core/runtime/pipeline/graph_memory.h"

namespace ranklab {

class ReplayedFunction {
 public:
  using Function = std::function<GraphTensors(const GraphTensors& inputs)>;
  // As in Megatron-LM's --cuda-graph-warmup-steps.
  static constexpr int kWarmUps = 3;

  struct Result {
    GraphTensors outputs;  // results of a replay are valid until the next call
    std::shared_ptr<const CallTiming> timing = nullptr;
  };

  ReplayedFunction(std::shared_ptr<GraphRecorder> recorder, Function function);
  Result operator()(const GraphTensors& inputs);

 private:
  void recapture(const GraphTensors& inputs);
  void record();

  std::shared_ptr<GraphRecorder> recorder_;
  Function function_;
  GraphTensors inputs_;  // where the recording reads them
  int warm_ups_ = 0;
  std::unique_ptr<RecordedGraph> graph_;  // null: not recorded yet
  GraphMemory memory_;
};

}  // namespace ranklab
