#include "core/runtime/pipeline/replayed_pass.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "core/base/error.h"
#include "core/comm/event_now.h"
#include "core/nn/device_random.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

constexpr const char* kSpan = "graph";
// a recording belongs to no step: statistics are off, and what differs between steps is read from tensors
constexpr int64_t kNoStep = -1;

// The type of the loss: fp32, and fp64 for fp64 models.
at::TensorOptions scale_options(const ParameterRegistry& registry) {
  return at::TensorOptions(registry.dtype() == at::kDouble ? at::kDouble : at::kFloat).device(registry.device());
}

}  // namespace

ReplayedPass::ReplayedPass(StepContext& c, std::shared_ptr<GraphRecorder> recorder)
    : ctx_(c.ctx),
      model_(c.model),
      optimizer_(c.optimizer),
      has_experts_(c.plan.config.model.moe.enabled()),
      parameters_(c.model.stage_parameters(0)),
      function_(std::move(recorder), [this](const GraphTensors& inputs) { return passes(inputs); }) {}

ReplayedPass* ReplayedPass::of_step(StepContext& c, std::unique_ptr<ReplayedPass>& kept) {
  if (!c.plan.config.cuda_graph || !c.plan.config.inject.empty()) return nullptr;
  if (!c.model.registry().hooks().empty() || type_watch_of_thread != nullptr || c.ctx.tracer().has_stepper())
    return nullptr;
  // Statistics are read on the host.
  if (QuantizerBook* quantizers = c.model.registry().quantizers();
      quantizers != nullptr && quantizers->samples({.step = c.step, .trains = true}))
    return nullptr;
  if (kept) return kept.get();
  auto recorder = c.ctx.graph_recorder();
  if (recorder) kept = std::make_unique<ReplayedPass>(c, std::move(recorder));
  return kept.get();
}

at::Tensor ReplayedPass::run(const Batch& batch, double loss_scale, int microbatch) {
  RANKLAB_CHECK(
      batch.documents == nullptr, ErrorKind::kInvalidArgument, .where = "--cuda-graph",
      .what = "a graph repeats one recorded computation; attention within documents differs from batch to batch",
      .got = "a batch with documents", .want = "sequences that are one document each", .fix = "leave --cuda-graph out");
  ctx_.tracer().set_microbatch(microbatch);
  Event span = event_now(ctx_, EventKind::kCompute, kSpan);
  span.step = ctx_.tracer().step();
  span.microbatch = microbatch;
  at::Tensor scale, offset;
  {
    const NoCostScope no_cost;
    scale = at::scalar_tensor(loss_scale, scale_options(model_.registry()));
    offset = random_offset(static_cast<uint64_t>(batch.step), batch.first_sample, model_.registry().device());
  }
  GraphTensors inputs = {batch.tokens_BS, batch.targets_BS, scale, offset};
  if (has_experts_) {
    const NoCostScope no_cost;
    inputs.push_back(at::scalar_tensor(batch.balance_scale, scale_options(model_.registry())));
  }
  const ReplayedFunction::Result result = function_(inputs);
  span.virtual_end_ns = ctx_.clock().now_ns();
  span.wall_end_ns = wall_now_ns();
  if (ctx_.tracer().wants(EventKind::kCompute)) unsettled_.push_back({span, result.timing});
  hand_over(result.outputs, microbatch);
  const NoCostScope no_cost;
  return result.outputs[0].clone();
}

GraphTensors ReplayedPass::passes(const GraphTensors& inputs) {
  const Batch batch{.tokens_BS = inputs[0],
                    .targets_BS = inputs[1],
                    .step = kNoStep,
                    .random_offset = inputs[3],
                    .recorded_balance_scale = has_experts_ ? inputs[4] : at::Tensor()};
  const at::Tensor loss = model_.forward_stage(0, {}, batch, StageResult::kLoss);
  torch::autograd::backward({loss * inputs[2]}, {at::Tensor()});
  GraphTensors outputs = {loss.detach()};
  for (const Parameter* parameter : parameters_)
    outputs.push_back(std::exchange(parameter->data.mutable_grad(), at::Tensor()));
  return outputs;
}

// In order from the last parameter to the first, roughly as backward does, so that buckets fill and are reduced in the
// usual order.
void ReplayedPass::hand_over(const GraphTensors& outputs, int microbatch) {
  optimizer_.begin_pass({.stage = 0, .microbatch = microbatch, .completes = true});
  for (size_t i = parameters_.size(); i-- > 0;)
    if (outputs[i + 1].defined()) hand_over_grad(parameters_[i]->data, outputs[i + 1]);
  optimizer_.end_pass();
}

void ReplayedPass::settle() {
  for (auto& [span, timing] : unsettled_) {
    if (timing != nullptr) {
      const CallTimes times = timing->call_times();
      span.wall_begin_ns = times.matched_wall_ns;
      span.wall_end_ns = times.done_wall_ns;
    }
    ctx_.tracer().record(span);
  }
  unsettled_.clear();
}

}  // namespace ranklab
