#include "core/runtime/pipeline/action_runner.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "core/base/injected_bug.h"
#include "core/comm/event_now.h"
#include "core/parallel/interleave.h"
#include "core/runtime/pipeline/step_batches.h"
#include "core/runtime/record/module_tracer.h"
#include "core/runtime/record/trace_span.h"
#include "core/sim/aten.h"

namespace ranklab {

// The span of an action on the timeline; an interleaved piece's span is closed while the piece waits for its turn.
class ActionRunner::Span {
 public:
  Span(ActionRunner& runner, const char* name, int stage, int microbatch)
      : runner_(runner), name_(name), stage_(stage), microbatch_(microbatch), slot_(runner.spans_[runner.piece_]) {
    slot_ = this;
    open();
  }
  ~Span() {
    close();
    slot_ = nullptr;
  }
  void open() {
    runner_.c_.ctx.tracer().set_microbatch(microbatch_);
    span_.emplace(runner_.c_.ctx, EventKind::kCompute, name_, runner_.is_pipeline() ? stage_ : -1);
    if (runner_.c_.modules != nullptr) runner_.c_.modules->resume(modules_);
  }
  void close() {
    if (runner_.c_.modules != nullptr && span_) runner_.c_.modules->pause();
    span_.reset();
  }

 private:
  ActionRunner& runner_;
  const char* name_;
  int stage_, microbatch_;
  Span*& slot_;
  std::optional<TraceSpan> span_;
  ModuleTracer::Stack modules_;
};

ActionRunner::ActionRunner(StepContext& c, const Schedule& whole, const Schedule& schedule,
                           const std::vector<Batch>& batches, BoundaryTensor boundary, const Options& options)
    : c_(c),
      schedule_(schedule),
      rank_(c.ctx.coordinate(Axis::kPp)),
      stages_(whole.stages_of(rank_)),
      batches_(batches),
      options_(options),
      messages_(c.ctx.comm(Axis::kPp), schedule, std::move(boundary)) {}

void ActionRunner::run() {
  const std::vector<Action>& actions = schedule_.ranks[static_cast<size_t>(rank_)];
  for (size_t i = 0; i < actions.size(); ++i) {
    messages_.prepare(i);
    const Action& a = actions[i];
    if (options_.replayed != nullptr) {
      if (a.has_input_grad()) run_replayed(a.backward_microbatch());
      continue;
    }
    if (options_.replayed_stages != nullptr) {
      run_replayed(a);
      continue;
    }
    if (a.kind == ActionKind::kFBW && c_.plan.config.overlap_moe) {
      run_pair(a);
      continue;
    }
    if (a.has_forward()) run_forward(a.stage, a.microbatch);
    if (a.has_input_grad()) run_backward(a.backward_stage(), a.backward_microbatch(), a.has_weight_grad());
    if (a.kind == ActionKind::kW) run_weight_grad(a.stage, a.microbatch);
  }
  c_.ctx.tracer().set_microbatch(-1);
  messages_.finish();
}

double ActionRunner::loss_sum() const {
  const NoCostScope free;
  double sum = 0;
  for (const at::Tensor& loss : losses_) sum += loss.item<double>();
  return sum;
}

// Interleaves a forward and a backward of different microbatches: each runs while the other's tokens are being sent.
void ActionRunner::run_pair(const Action& a) {
  const InterleaveHooks hooks{.resumed =
                                  [this](int piece) {
                                    piece_ = static_cast<size_t>(piece);
                                    if (spans_[piece_] != nullptr) spans_[piece_]->open();
                                  },
                              .suspended =
                                  [this](int piece) {
                                    if (Span* span = spans_[static_cast<size_t>(piece)]) span->close();
                                    piece_ = 0;
                                  }};
  interleave([&] { run_forward(a.stage, a.microbatch); },
             [&] { run_backward(a.backward_stage(), a.backward_microbatch(), a.has_weight_grad()); }, hooks);
}

// Runs a microbatch's forward and weight gradients together with its backward.
void ActionRunner::run_replayed(int microbatch) {
  const Batch& batch = batches_[static_cast<size_t>(microbatch)];
  losses_.push_back(options_.replayed->run(c_, batch, loss_scale_of(microbatch), microbatch));
}

void ActionRunner::run_replayed(const Action& a) {
  ReplayedStages& stages = *options_.replayed_stages;
  if (a.has_forward()) {
    const at::Tensor input =
        schedule_.is_first(a.stage) ? at::Tensor() : messages_.take_activation(a.stage, a.microbatch);
    take_output(a.stage, a.microbatch,
                stages.forward(c_, local(a.stage), a.microbatch, batches_[static_cast<size_t>(a.microbatch)],
                               loss_scale_of(a.microbatch), input));
    flights_[{a.stage, a.microbatch}] = {};
    count_flights();
  }
  const int stage = a.backward_stage(), microbatch = a.backward_microbatch();
  if (a.has_input_grad()) {
    const at::Tensor grad = schedule_.is_last(stage) ? at::Tensor() : messages_.take_gradient(stage, microbatch);
    const at::Tensor input_grad = stages.backward(local(stage), microbatch, grad, a.has_weight_grad());
    if (!schedule_.is_first(stage)) messages_.give_gradient(stage, microbatch, input_grad);
  }
  if (a.kind == ActionKind::kW) stages.weight_grad(local(stage), microbatch);
  if (a.has_weight_grad()) land(stage, microbatch);
}

double ActionRunner::loss_scale_of(int microbatch) const {
  if (!injected(InjectedBug::kMeanOfMeans)) return options_.loss_scale;
  const int64_t tokens = std::max<int64_t>(count_targets(batches_[static_cast<size_t>(microbatch)]), 1);
  return options_.scale / static_cast<double>(tokens * c_.plan.microbatches_of(c_.step) * c_.plan.dp());
}

int ActionRunner::local(int stage) const {
  return static_cast<int>(std::find(stages_.begin(), stages_.end(), stage) - stages_.begin());
}

void ActionRunner::run_forward(int stage, int microbatch) {
  at::Tensor input;
  if (!schedule_.is_first(stage)) {
    input = messages_.take_activation(stage, microbatch);
    if (at::GradMode::is_enabled()) input = input.detach().set_requires_grad(true);
    type_boundary(input, c_.plan.sequence_parallel);
  }
  at::Tensor output;
  begin_observed_pass();
  {
    const Span span(*this, "F", stage, microbatch);
    output = c_.model.forward_stage(local(stage), input, batches_[static_cast<size_t>(microbatch)], options_.result);
  }
  take_output(stage, microbatch, output.detach());
  if (!at::GradMode::is_enabled()) return;
  flights_[{stage, microbatch}] = {input, output, {}};
  count_flights();
}

void ActionRunner::take_output(int stage, int microbatch, const at::Tensor& output) {
  if (!schedule_.is_last(stage)) {
    messages_.give_activation(stage, microbatch, output);
  } else if (options_.result == StageResult::kLoss) {
    losses_.push_back(output);
  } else {
    result_ = output;
  }
}

void ActionRunner::run_backward(int stage, int microbatch, bool whole) {
  Flight& flight = flights_.at({stage, microbatch});
  const bool is_last = schedule_.is_last(stage);
  const at::Tensor grad = is_last ? at::Tensor() : messages_.take_gradient(stage, microbatch);
  if (!is_last) type_boundary(grad, c_.plan.sequence_parallel);
  begin_observed_pass();
  c_.optimizer.begin_pass({.stage = local(stage), .microbatch = microbatch, .completes = whole});
  {
    const Span span(*this, whole ? "BW" : "B", stage, microbatch);
    std::optional<DeferWeightGrads> defer;
    if (!whole) defer.emplace(flight.weights);
    const at::Tensor root = is_last ? flight.output * loss_scale_of(microbatch) : flight.output;
    torch::autograd::backward({root}, {grad});
  }
  // Weight gradients that are left for W keep the input, and would keep its gradient with it.
  if (!schedule_.is_first(stage))
    messages_.give_gradient(stage, microbatch, std::exchange(flight.input.mutable_grad(), {}));
  c_.optimizer.end_pass();
  flight.input.reset();
  flight.output.reset();
  if (whole) land(stage, microbatch);
}

void ActionRunner::run_weight_grad(int stage, int microbatch) {
  begin_observed_pass();
  {
    // A pass that a plan repeats takes its time when it begins (core/plan/replay.h).
    const Span span(*this, "W", stage, microbatch);
    c_.optimizer.begin_pass({.stage = local(stage), .microbatch = microbatch, .completes = true});
    flights_.at({stage, microbatch}).weights.run();
  }
  c_.optimizer.end_pass();
  land(stage, microbatch);
}

void ActionRunner::begin_observed_pass() {
  if (c_.ctx.op_observer() != nullptr) c_.ctx.op_observer()->begin_pass();
}

void ActionRunner::land(int stage, int microbatch) {
  flights_.erase({stage, microbatch});
  count_flights();
}

// Counter on the timeline: activations that this rank holds, in stages.
void ActionRunner::count_flights() {
  if (!is_pipeline() || !c_.ctx.tracer().enabled()) return;
  Event event = event_now(c_.ctx, EventKind::kCounter, "activations held");
  event.value = static_cast<double>(flights_.size());
  c_.ctx.tracer().record(event);
}

}  // namespace ranklab
