// A microbatch's forward and backward as a ReplayedFunction, for a rank that has the whole model (--cuda-graph;
// Megatron-LM's full iteration, a microbatch at a time). Recorded are the kernels from tokens, targets, loss scale
// and the offset in dropout's streams to the loss and each parameter's gradient. What depends on the step stays
// outside: gradients are handed to the optimizer after the replay, which adds them over microbatches and reduces them
// over ranks (after the backward, that is, not during it). So losses and gradients have the bits of a pass that is not
// recorded. The table of combinations refuses what a recording would freeze (core/config/requirement_rows.cpp). On the
// timeline a pass is one span, "graph". Cost: the gradients of one microbatch, beside the sums of all. Thread rule: its
// rank's thread, where it is also destroyed.
#pragma once
#include <memory>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/pipeline/replayed_function.h"

namespace ranklab {

class ReplayedPass {
 public:
  // The context's parts outlive this. REQUIRES: one stage.
  ReplayedPass(StepContext& context, std::shared_ptr<GraphRecorder> recorder);

  // What runs this step's passes: `kept`, made at first, or null where they are not replayed: not asked for, a world
  // without a recorder (that of shapes), or the passes are watched or changed (hooks of modules, a check of tensors'
  // types, a stepper, an injected bug).
  static ReplayedPass* of_step(StepContext& context, std::unique_ptr<ReplayedPass>& kept);
  // RETURNS: the microbatch's loss, a tensor of its own.
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
  std::vector<Parameter*> parameters_;
  ReplayedFunction function_;
  std::vector<Unsettled> unsettled_;
};

}  // namespace ranklab
