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
#include "core/runtime/pipeline/replayed_function.h"

namespace ranklab {

class ReplayedPass {
 public:
  // The parts of the context must outlive this. REQUIRES: one stage.
  ReplayedPass(StepContext& context, std::shared_ptr<GraphRecorder> recorder);

  // The object that runs this step's passes: `kept`, which the first call creates, or null if passes are not replayed.
  // That is the case if --cuda-graph was not given, if the world has no recorder (shapes), or if something observes or
  // changes the passes (hooks of modules, a check of tensors' types, a stepper, an injected bug).
  static ReplayedPass* of_step(StepContext& context, std::unique_ptr<ReplayedPass>& kept);
  // RETURNS: the microbatch's loss, as a separate tensor.
  at::Tensor run(const Batch& batch, double loss_scale, int microbatch);
  // Records the spans of the passes since the last call. REQUIRES: the device has finished them.
  void settle();

 private:
  GraphTensors passes(const GraphTensors& inputs);
  void hand_over(const GraphTensors& outputs, int microbatch);

  struct Unsettled {
    Event span;
    std::shared_ptr<const CallTiming> timing;
  };

  RankContext& ctx_;
  CausalLm& model_;
  RankOptimizer& optimizer_;
  bool has_experts_;
  std::vector<Parameter*> parameters_;
  ReplayedFunction function_;
  std::vector<Unsettled> unsettled_;
};

}  // namespace ranklab
