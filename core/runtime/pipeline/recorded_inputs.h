// What passes that are replayed as graphs share (replayed_pass.h, replayed_stages.h): the tensors on the device in
// which a recording finds what differs between microbatches, the gradients that it leaves, and the spans of its
// replays, whose times the device knows later. Thread rule: the rank's thread.
#pragma once
#include <memory>
#include <vector>

#include "core/comm/graph_recorder.h"
#include "core/runtime/components.h"

namespace ranklab {

// Whether this step's passes can be replayed. They cannot if --cuda-graph was not given, or if something observes or
// changes the passes (hooks of modules, a check of tensors' types, a stepper, an injected bug, statistics of
// quantizers, which the host reads).
bool replays_step(StepContext& context);

// Tokens, targets (undefined where the rank has none), the factor of the loss, the offset in dropout's streams, and
// for models with experts the factor of their balancing losses.
GraphTensors recorded_inputs(StepContext& context, const Batch& batch, double loss_scale);
// The batch, and the factor of the loss, which a body reads from them.
Batch recorded_batch(const GraphTensors& inputs);
const at::Tensor& recorded_loss_scale(const GraphTensors& inputs);

bool same_kinds(const GraphTensors& a, const GraphTensors& b);
// Undefined for undefined ones.
GraphTensors empty_like(const GraphTensors& tensors);
// Without cost in virtual time; the host does not wait.
void copy_into(const GraphTensors& to, const GraphTensors& from);

// A result that the next replay does not overwrite, without cost in virtual time; undefined for an undefined one.
at::Tensor separate_copy(const at::Tensor& result);

// Takes the gradients of a pass from its parameters, and appends them; undefined for a parameter that has none.
void take_gradients(const std::vector<Parameter*>& parameters, GraphTensors& outputs);
// Hands the gradients from `outputs[first]` on to the optimizer. In order from the last parameter to the first, roughly
// as backward does, so that buckets fill and are reduced in the usual order.
void hand_over_gradients(RankOptimizer& optimizer, const GradPass& pass, const std::vector<Parameter*>& parameters,
                         const GraphTensors& outputs, size_t first);

class ReplaySpans {
 public:
  explicit ReplaySpans(RankContext& ctx) : ctx_(ctx) {}
  Event begin(const char* name, int stage, int microbatch);
  // `timing`: null where the host's times are those of the pass.
  void end(Event span, std::shared_ptr<const CallTiming> timing);
  // Records the spans since the last call; where there are any, waits until the device has finished them.
  void settle();

 private:
  struct Unsettled {
    Event span;
    std::shared_ptr<const CallTiming> timing;
  };
  RankContext& ctx_;
  std::vector<Unsettled> unsettled_;
};

}  // namespace ranklab
