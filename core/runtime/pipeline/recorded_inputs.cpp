#include "core/runtime/pipeline/recorded_inputs.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/comm/event_now.h"
#include "core/nn/device_random.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// a recording belongs to no step: statistics are off, and what differs between steps is read from tensors
constexpr int64_t kNoStep = -1;

enum : size_t { kInputTokens, kTargets, kLossScale, kOffset, kBalanceScale };

// The type of the loss: fp32, and fp64 for fp64 models.
at::TensorOptions scale_options(const ParameterRegistry& registry) {
  return at::TensorOptions(registry.dtype() == at::kDouble ? at::kDouble : at::kFloat).device(registry.device());
}

bool same_kind(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

}  // namespace

bool replays_step(StepContext& c) {
  if (!c.plan.config.cuda_graph || !c.plan.config.inject.empty()) return false;
  if (!c.model.registry().hooks().empty() || type_watch_of_thread != nullptr || c.ctx.tracer().has_stepper())
    return false;
  QuantizerBook* quantizers = c.model.registry().quantizers();
  return quantizers == nullptr || !quantizers->samples({.step = c.step, .trains = true});
}

GraphTensors recorded_inputs(StepContext& c, const Batch& batch, double loss_scale) {
  RANKLAB_CHECK(
      batch.documents == nullptr, ErrorKind::kInvalidArgument, .where = "--cuda-graph",
      .what = "a graph repeats one recorded computation; attention within documents differs from batch to batch",
      .got = "a batch with documents", .want = "sequences that are one document each", .fix = "leave --cuda-graph out");
  const NoCostScope no_cost;
  const ParameterRegistry& registry = c.model.registry();
  GraphTensors inputs = {batch.tokens_BS, batch.targets_BS, at::scalar_tensor(loss_scale, scale_options(registry)),
                         random_offset(static_cast<uint64_t>(batch.step), batch.first_sample, registry.device())};
  if (c.plan.config.model.moe.enabled())
    inputs.push_back(at::scalar_tensor(batch.balance_scale, scale_options(registry)));
  return inputs;
}

Batch recorded_batch(const GraphTensors& inputs) {
  return {.tokens_BS = inputs[kInputTokens],
          .targets_BS = inputs[kTargets],
          .step = kNoStep,
          .random_offset = inputs[kOffset],
          .recorded_balance_scale = inputs.size() > kBalanceScale ? inputs[kBalanceScale] : at::Tensor()};
}

const at::Tensor& recorded_loss_scale(const GraphTensors& inputs) { return inputs[kLossScale]; }

bool same_kinds(const GraphTensors& a, const GraphTensors& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_kind);
}

GraphTensors empty_like(const GraphTensors& tensors) {
  const NoCostScope no_cost;
  const MemoryScope memory(MemoryCategory::kBuffers);
  GraphTensors made;
  for (const at::Tensor& tensor : tensors) made.push_back(tensor.defined() ? at::empty_like(tensor) : at::Tensor());
  return made;
}

void copy_into(const GraphTensors& to, const GraphTensors& from) {
  const NoCostScope no_cost;
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].defined()) to[i].copy_(from[i], /*non_blocking=*/true);
}

at::Tensor separate_copy(const at::Tensor& result) {
  const NoCostScope no_cost;
  return result.defined() ? result.clone() : result;
}

void take_gradients(const std::vector<Parameter*>& parameters, GraphTensors& outputs) {
  for (const Parameter* parameter : parameters)
    outputs.push_back(std::exchange(parameter->data.mutable_grad(), at::Tensor()));
}

void hand_over_gradients(RankOptimizer& optimizer, const GradPass& pass, const std::vector<Parameter*>& parameters,
                         const GraphTensors& outputs, size_t first) {
  optimizer.begin_pass(pass);
  for (size_t i = parameters.size(); i-- > 0;) {
    const at::Tensor &leaf = parameters[i]->data, &grad = outputs[first + i];
    if (!grad.defined()) continue;
    if (leaf.grad().defined())
      accumulate_grad(leaf, grad);  // W's part of a gradient whose other part came with B
    else
      hand_over_grad(leaf, grad);
  }
  optimizer.end_pass();
}

Event ReplaySpans::begin(const char* name, int stage, int microbatch) {
  ctx_.tracer().set_microbatch(microbatch);
  Event span = event_now(ctx_, EventKind::kCompute, name);
  span.step = ctx_.tracer().step();
  span.stage = stage;
  span.microbatch = microbatch;
  return span;
}

void ReplaySpans::end(Event span, std::shared_ptr<const CallTiming> timing) {
  span.virtual_end_ns = ctx_.clock().now_ns();
  span.wall_end_ns = wall_now_ns();
  if (ctx_.tracer().wants(EventKind::kCompute)) unsettled_.push_back({span, std::move(timing)});
}

void ReplaySpans::settle() {
  for (auto& [span, timing] : unsettled_) {
    if (timing != nullptr) {
      while (!timing->known()) std::this_thread::yield();
      const CallTimes times = timing->call_times();
      span.wall_begin_ns = times.matched_wall_ns;
      span.wall_end_ns = times.done_wall_ns;
    }
    ctx_.tracer().record(span);
  }
  unsettled_.clear();
}

}  // namespace ranklab
