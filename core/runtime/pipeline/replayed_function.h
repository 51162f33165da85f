// A function of tensors that is recorded as a graph (core/comm/graph_recorder.h) and replayed, as torch.cuda.graph's
// users do it: a few calls run as they are, then one is recorded, and each call copies its inputs to where the
// recording read them and replays. Inputs of another shape or type begin anew: what was recorded is freed. The function
// may read its inputs, and tensors that stay where they are (parameters); numbers from the host are what they were in
// the recording. Cost: a copy of the inputs a call, a set of inputs, and all memory that the function takes, for good.
// Thread rule: its rank's thread, where it is also destroyed.
#pragma once
#include <functional>
#include <memory>

#include "core/comm/graph_recorder.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

class ReplayedFunction {
 public:
  using Function = std::function<GraphTensors(const GraphTensors& inputs)>;
  // Megatron-LM's --cuda-graph-warmup-steps.
  static constexpr int kWarmUps = 3;

  struct Result {
    GraphTensors outputs;  // of a replay: valid until the next call
    std::shared_ptr<const CallTiming> timing = nullptr;
  };

  ReplayedFunction(std::shared_ptr<GraphRecorder> recorder, Function function);
  Result operator()(const GraphTensors& inputs);

 private:
  void begin_anew(const GraphTensors& inputs);
  void record();
  void note_peak() const;

  std::shared_ptr<GraphRecorder> recorder_;
  Function function_;
  GraphTensors inputs_;  // where the recording reads them
  int warm_ups_ = 0;
  std::unique_ptr<RecordedGraph> graph_;  // null: not recorded yet
  // A replay takes no memory that the book would see, but the graph uses what it has anew: its peaks by category, above
  // what is left of it between replays.
  MemoryBook::Peaks taken_;
};

}  // namespace ranklab
