// A microbatch's forward and backward as a ReplayedFunction, for a rank that has the whole model (--cuda-graph; like
// Megatron-LM's full-iteration graphs, but one microbatch at a time). The recording contains the kernels from tokens,
// targets, scales of the losses and the offset in dropout's streams to the loss and each parameter's gradient.
// Everything that depends on the step stays outside: gradients are handed to the optimizer after the replay, which sums
// them over microbatches and reduces them over ranks (that is, after the backward and not during it). So losses and
// gradients have the same bits as in a pass that is not recorded. The table of combinations refuses settings whose
// effect a recording would freeze (core/config/requirement_rows.cpp). On the timeline a pass is one span, "graph".
// Cost: the gradients of one microbatch, in addition to the sums of all. Thread rule: its rank's thread, where it must
// also be destroyed.
#pragma once
#include <memory>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/pipeline/recorded_inputs.h"
#include "core/runtime/pipeline/replayed_function.h"

namespace ranklab {

class ReplayedPass {
 public:
  // The parts of the context must outlive this. REQUIRES: one stage.
  ReplayedPass(StepContext& context, std::shared_ptr<GraphRecorder> recorder);

  // The object that runs this step's passes: `kept`, which the first call creates, or null if passes are not replayed
  // (replays_step()), the world has no recorder (shapes), or the rank has not the whole model.
  static ReplayedPass* of_step(StepContext& context, std::unique_ptr<ReplayedPass>& kept);
  // RETURNS: the microbatch's loss, as a separate tensor.
  at::Tensor run(StepContext& context, const Batch& batch, double loss_scale, int microbatch);
  void settle() { spans_.settle(); }

 private:
  GraphTensors passes(const GraphTensors& inputs);

  CausalLm& model_;
  RankOptimizer& optimizer_;
  std::vector<Parameter*> parameters_;
  ReplayedFunction function_;
  ReplaySpans spans_;
};

}  // namespace ranklab
