#include "core/runtime/pipeline/replayed_stages.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/runtime/pipeline/replayed_function.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// How many microbatches a stage holds at once, from a forward to the end of its backward.
int most_in_flight(const std::vector<Action>& actions, int stage) {
  int held = 0, most = 0;
  for (const Action& action : actions) {
    if (action.has_forward() && action.stage == stage) most = std::max(most, ++held);
    if (action.has_weight_grad() && action.backward_stage() == stage) --held;
  }
  return most;
}

bool divides_backwards(const std::vector<Action>& actions, int stage) {
  return std::ranges::any_of(actions, [&](const Action& a) { return a.kind == ActionKind::kW && a.stage == stage; });
}

}  // namespace

ReplayedStages::ReplayedStages(StepContext& c, std::shared_ptr<GraphRecorder> recorder)
    : model_(c.model), optimizer_(c.optimizer), recorder_(std::move(recorder)), spans_(c.ctx) {
  const Schedule& schedule = c.plan.schedule;
  const int rank = c.ctx.coordinate(Axis::kPp);
  for (const int number : schedule.stages_of(rank))
    stages_.push_back({.number = number,
                       .is_first = schedule.is_first(number),
                       .is_last = schedule.is_last(number),
                       .divides = divides_backwards(schedule.ranks[static_cast<size_t>(rank)], number),
                       .parameters = model_.stage_parameters(static_cast<int>(stages_.size()))});
}

ReplayedStages* ReplayedStages::of_step(StepContext& c, const Schedule& schedule, const std::vector<Batch>& batches,
                                        const BoundaryTensor& boundary, std::unique_ptr<ReplayedStages>& kept) {
  if (schedule.num_stages() == 1 || !replays_step(c)) return nullptr;
  if (!kept) {
    auto recorder = c.ctx.graph_recorder();
    if (!recorder) return nullptr;
    kept = std::make_unique<ReplayedStages>(c, std::move(recorder));
  }
  kept->make_slots(c, schedule, batches.at(0), boundary);
  if (kept->warm_ups_ >= ReplayedFunction::kWarmUps)
    kept->record_missing();
  else
    kept->warm_ups_ += schedule.num_microbatches / schedule.num_chains();
  return kept.get();
}

void ReplayedStages::make_slots(StepContext& c, const Schedule& schedule, const Batch& batch,
                                const BoundaryTensor& boundary) {
  const std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(c.ctx.coordinate(Axis::kPp))];
  const auto boundary_of = [&](int part) {
    const NoCostScope no_cost;
    const MemoryScope memory(MemoryCategory::kBuffers);
    return at::zeros(boundary.shapes[static_cast<size_t>(part)], boundary.options);
  };
  for (Stage& stage : stages_) {
    const int part = schedule.part(stage.number);
    const auto wanted = static_cast<size_t>(most_in_flight(actions, stage.number));
    while (stage.slots.size() < wanted) {
      auto slot = std::make_unique<Slot>();
      const GraphTensors inputs = recorded_inputs(c, batch, 1);
      slot->inputs = empty_like(inputs);
      copy_into(slot->inputs, inputs);  // a recorder may run what it records
      if (!stage.is_first) slot->boundary_in = boundary_of(part - 1);
      if (!stage.is_last) slot->grad = boundary_of(part);
      stage.slots.push_back(std::move(slot));
    }
  }
}

void ReplayedStages::record_missing() {
  for (size_t i = 0; i < stages_.size(); ++i)
    for (const auto& slot : stages_[i].slots)
      if (!slot->forward) memory_.measure([&] { record(static_cast<int>(i), *slot); });
}

void ReplayedStages::record(int number, Slot& slot) {
  const Stage& stage = stages_[static_cast<size_t>(number)];
  slot.forward = recorder_->record([this, number, &slot] { return run_forward(number, slot); });
  slot.backward = recorder_->record([this, &stage, &slot] { return run_backward(stage, slot); }, slot.forward.get());
  if (stage.divides)
    slot.weight_grad =
        recorder_->record([this, &stage, &slot] { return run_weight_grad(stage, slot); }, slot.backward.get());
}

GraphTensors ReplayedStages::run_forward(int number, Slot& slot) {
  if (slot.boundary_in.defined()) slot.input = slot.boundary_in.detach().set_requires_grad(true);
  slot.output = model_.forward_stage(number, slot.input, recorded_batch(slot.inputs), StageResult::kLoss);
  return {slot.output.detach()};
}

GraphTensors ReplayedStages::run_backward(const Stage& stage, Slot& slot) {
  {
    std::optional<DeferWeightGrads> defer;
    if (stage.divides) defer.emplace(slot.weights);
    const at::Tensor root = stage.is_last ? slot.output * recorded_loss_scale(slot.inputs) : slot.output;
    torch::autograd::backward({root}, {slot.grad});
  }
  GraphTensors outputs = {stage.is_first ? at::Tensor() : std::exchange(slot.input.mutable_grad(), at::Tensor())};
  slot.input.reset();
  slot.output.reset();
  take_gradients(stage.parameters, outputs);
  return outputs;
}

GraphTensors ReplayedStages::run_weight_grad(const Stage& stage, Slot& slot) {
  // Where a step has one microbatch, the gradients of its B may still be there; they are not the graph's.
  GraphTensors earlier, outputs;
  take_gradients(stage.parameters, earlier);
  slot.weights.run();
  take_gradients(stage.parameters, outputs);
  for (size_t i = 0; i < earlier.size(); ++i) stage.parameters[i]->data.mutable_grad() = earlier[i];
  return outputs;
}

GraphTensors ReplayedStages::run(const char* name, int stage, const Slot& slot,
                                 const std::unique_ptr<RecordedGraph>& graph, const GraphBody& body) {
  const Event span = spans_.begin(name, stages_[static_cast<size_t>(stage)].number, slot.microbatch);
  if (graph == nullptr) {
    GraphTensors outputs = recorder_->run(body);
    spans_.end(span, nullptr);
    return outputs;
  }
  spans_.end(span, graph->replay());
  memory_.note_replay();
  return graph->outputs();
}

ReplayedStages::Slot& ReplayedStages::slot_of(int stage, int microbatch) {
  std::vector<std::unique_ptr<Slot>>& slots = stages_[static_cast<size_t>(stage)].slots;
  const auto found = std::ranges::find_if(slots, [&](const auto& slot) { return slot->microbatch == microbatch; });
  RANKLAB_CHECK(found != slots.end(), ErrorKind::kInternal, .where = "ReplayedStages",
                .what = microbatch < 0 ? "all slots of the stage are taken" : "the microbatch has no slot",
                .got = "stage " + std::to_string(stage) + ", microbatch " + std::to_string(microbatch));
  return **found;
}

at::Tensor ReplayedStages::forward(StepContext& c, int number, int microbatch, const Batch& batch, double loss_scale,
                                   const at::Tensor& input) {
  const Stage& stage = stages_[static_cast<size_t>(number)];
  Slot& slot = slot_of(number, -1);
  slot.microbatch = microbatch;
  copy_into(slot.inputs, recorded_inputs(c, batch, loss_scale));
  copy_into({slot.boundary_in}, {input});
  const GraphTensors outputs = run("F", number, slot, slot.forward, [&] { return run_forward(number, slot); });
  return stage.is_last ? separate_copy(outputs[0]) : outputs[0];
}

at::Tensor ReplayedStages::backward(int number, int microbatch, const at::Tensor& grad, bool whole) {
  const Stage& stage = stages_[static_cast<size_t>(number)];
  Slot& slot = slot_of(number, microbatch);
  copy_into({slot.grad}, {grad});
  const GraphTensors outputs =
      run(stage.divides ? "B" : "BW", number, slot, slot.backward, [&] { return run_backward(stage, slot); });
  const at::Tensor input_grad = separate_copy(outputs[0]);
  hand_over_gradients(optimizer_, {.stage = number, .microbatch = microbatch, .completes = !stage.divides},
                      stage.parameters, outputs, 1);
  if (!stage.divides)
    slot.microbatch = -1;
  else if (whole)
    weight_grad(number, microbatch);
  return input_grad;
}

void ReplayedStages::weight_grad(int number, int microbatch) {
  const Stage& stage = stages_[static_cast<size_t>(number)];
  Slot& slot = slot_of(number, microbatch);
  const GraphTensors outputs = run("W", number, slot, slot.weight_grad, [&] { return run_weight_grad(stage, slot); });
  hand_over_gradients(optimizer_, {.stage = number, .microbatch = microbatch, .completes = true}, stage.parameters,
                      outputs, 0);
  slot.microbatch = -1;
}

}  // namespace ranklab
