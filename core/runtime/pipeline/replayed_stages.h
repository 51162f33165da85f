// The passes of a pipeline rank's stages as graphs (--cuda-graph), as replayed_pass.h has them for a whole model.
// Between its forward and the end of its backward, a microbatch has a slot of its stage: a graph for its forward, one
// for its backward, and for schedules that divide it one for its weights' gradients, all of which share memory, because
// the backward reads what the forward saved. A stage has as many slots as it holds microbatches at once. Messages stay
// outside: what arrives is copied to where the graphs read it, and the gradient that leaves is copied, since the slot's
// next microbatch may overwrite it before it has been sent.
// Passes run normally until a stage has run ReplayedFunction::kWarmUps of them. Then all graphs are recorded at the
// beginning of a step, when no message is in flight for which a recording's wait for the device could wait forever.
// Cost: the activations of a microbatch per slot, as without graphs, its temporary tensors and the gradients of its
// parameters. Thread rule: its rank's thread, where it must also be destroyed.
#pragma once
#include <memory>
#include <vector>

#include "core/parallel/deferred_grads.h"
#include "core/runtime/components.h"
#include "core/runtime/pipeline/graph_memory.h"
#include "core/runtime/pipeline/recorded_inputs.h"
#include "core/runtime/pipeline/stage_messages.h"

namespace ranklab {

class ReplayedStages {
 public:
  // The parts of the context must outlive this.
  ReplayedStages(StepContext& context, std::shared_ptr<GraphRecorder> recorder);

  // The object that runs this step's passes: `kept`, which the first call creates, or null if passes are not replayed
  // (replays_step()), the world has no recorder (shapes), or the rank has the whole model. Has graphs for all that the
  // schedule does with such batches. Collective over the ranks that share a stage.
  static ReplayedStages* of_step(StepContext& context, const Schedule& schedule, const std::vector<Batch>& batches,
                                 const BoundaryTensor& boundary, std::unique_ptr<ReplayedStages>& kept);

  // `stage`: the number among the rank's stages. `input`: what the previous stage sent; undefined in the first one.
  // RETURNS: what goes to the next stage, valid until the microbatch's backward ends; of the last stage the loss.
  at::Tensor forward(StepContext& context, int stage, int microbatch, const Batch& batch, double loss_scale,
                     const at::Tensor& input);
  // `grad`: what the next stage sent; undefined in the last one. Gradients of weights are left to weight_grad() unless
  // the backward is `whole`. RETURNS: what goes to the previous stage; undefined in the first one.
  at::Tensor backward(int stage, int microbatch, const at::Tensor& grad, bool whole);
  void weight_grad(int stage, int microbatch);
  void settle() { spans_.settle(); }

 private:
  // What one microbatch in flight has.
  struct Slot {
    int microbatch = -1;  // -1: free
    // where the graphs read
    GraphTensors inputs;
    at::Tensor boundary_in, grad;  // undefined in the first and the last stage
    // from the forward to the backward, while bodies run
    at::Tensor input, output;
    WeightGradQueue weights;
    // destroyed before the memory that they read
    std::unique_ptr<RecordedGraph> forward, backward, weight_grad;
  };
  struct Stage {
    int number = 0;  // in the schedule
    bool is_first = false, is_last = false;
    bool divides = false;  // some of its backwards are divided; then all are, since a slot has one kind
    std::vector<Parameter*> parameters = {};
    std::vector<std::unique_ptr<Slot>> slots = {};
  };

  // While batches grow, so does the number of slots.
  void make_slots(StepContext& context, const Schedule& schedule, const Batch& batch, const BoundaryTensor& boundary);
  void record_missing();
  void record(int stage, Slot& slot);
  GraphTensors run_forward(int stage, Slot& slot);
  GraphTensors run_backward(const Stage& stage, Slot& slot);
  GraphTensors run_weight_grad(const Stage& stage, Slot& slot);
  // A graph's replay, or the body while there is no graph.
  GraphTensors run(const char* name, int stage, const Slot& slot, const std::unique_ptr<RecordedGraph>& graph,
                   const GraphBody& body);
  Slot& slot_of(int stage, int microbatch);  // -1: a free one

  CausalLm& model_;
  RankOptimizer& optimizer_;
  std::shared_ptr<GraphRecorder> recorder_;
  int warm_ups_ = 0;
  GraphMemory memory_;
  std::vector<Stage> stages_;
  ReplaySpans spans_;
};

}  // namespace ranklab
