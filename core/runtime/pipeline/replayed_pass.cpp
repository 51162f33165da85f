#include "core/runtime/pipeline/replayed_pass.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "core/sim/aten.h"

namespace ranklab {

ReplayedPass::ReplayedPass(StepContext& c, std::shared_ptr<GraphRecorder> recorder)
    : model_(c.model),
      optimizer_(c.optimizer),
      parameters_(c.model.stage_parameters(0)),
      function_(std::move(recorder), [this](const GraphTensors& inputs) { return passes(inputs); }),
      spans_(c.ctx) {}

ReplayedPass* ReplayedPass::of_step(StepContext& c, std::unique_ptr<ReplayedPass>& kept) {
  if (c.plan.schedule.num_stages() > 1 || !replays_step(c)) return nullptr;
  if (kept) return kept.get();
  auto recorder = c.ctx.graph_recorder();
  if (recorder) kept = std::make_unique<ReplayedPass>(c, std::move(recorder));
  return kept.get();
}

at::Tensor ReplayedPass::run(StepContext& c, const Batch& batch, double loss_scale, int microbatch) {
  const Event span = spans_.begin("graph", -1, microbatch);
  const ReplayedFunction::Result result = function_(recorded_inputs(c, batch, loss_scale));
  spans_.end(span, result.timing);
  hand_over_gradients(optimizer_, {.stage = 0, .microbatch = microbatch, .completes = true}, parameters_,
                      result.outputs, 1);
  return separate_copy(result.outputs[0]);
}

GraphTensors ReplayedPass::passes(const GraphTensors& inputs) {
  const at::Tensor loss = model_.forward_stage(0, {}, recorded_batch(inputs), StageResult::kLoss);
  torch::autograd::backward({loss * recorded_loss_scale(inputs)}, {at::Tensor()});
  GraphTensors outputs = {loss.detach()};
  take_gradients(parameters_, outputs);
  return outputs;
}

}  // namespace ranklab
