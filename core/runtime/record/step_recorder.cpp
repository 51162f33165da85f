#include "core/runtime/record/step_recorder.h"

#include "core/comm/event_now.h"
#include "core/comm/traced_communicator.h"
#include "core/sim/aten.h"

namespace ranklab {

StepRecorder::StepRecorder(RankContext& ctx, const RunPlan& plan, const Options& options)
    : ctx_(ctx), plan_(plan), options_(options), modules_(ctx) {
  ctx_.tracer().set_sink(options.sink);
  ctx_.tracer().set_level(trace_level_named(plan.config.trace_level));
  ctx_.tracer().set_enabled(false);
}

void StepRecorder::begin_step(int64_t step, ModuleHooks& hooks) {
  const bool kept = plan_.config.trace && traced_.has(step);
  Tracer& tracer = ctx_.tracer();
  tracer.set_step(static_cast<int>(step));
  tracer.set_keeping(kept);
  tracer.set_enabled(kept || options_.stepper != nullptr || options_.sink != nullptr);
  tracer.set_stepper(options_.stepper);
  watch_modules(hooks);
}

// Modules and kernels are observed only if they are recorded, because observing them has a cost.
void StepRecorder::watch_modules(ModuleHooks& hooks) {
  Tracer& tracer = ctx_.tracer();
  hooks.set(modules_, tracer.wants(EventKind::kModule));
  if (ctx_.op_observer() == nullptr) return;
  if (!tracer.wants(EventKind::kKernel)) return ctx_.op_observer()->set_on_kernel({});
  ctx_.op_observer()->set_on_kernel([this](const KernelRun& kernel) { modules_.kernel(kernel); });
}

void StepRecorder::hold_at(BoundaryKind kind) {
  if (!ctx_.tracer().has_stepper()) return;
  ctx_.tracer().at_boundary({.kind = kind, .name = "step", .virtual_ns = ctx_.clock().now_ns()});
}

// Shows this rank's part of the loss to breakpoints before it is used.
void StepRecorder::observe_loss(const StepOutput& output) {
  if (!ctx_.tracer().has_stepper() || output.tokens == 0) return;
  ctx_.tracer().observe("loss", output.loss_sum / static_cast<double>(output.tokens), ctx_.clock().now_ns());
}

void StepRecorder::count(const StepMetrics& metrics) {
  const ModelConfig& model = plan_.config.model;
  count("loss", metrics.loss);
  if (metrics.loss_scale > 0) count("loss scale", metrics.loss_scale);
  if (model.mtp_num_layers > 0) count("mtp_loss", metrics.mtp_loss);
  if (model.moe.enabled()) {
    count("moe/max_over_mean", metrics.moe_max_over_mean);
    count("moe/aux_loss", metrics.moe_aux_loss);
  }
  if (metrics.max_attention_logit) {
    count("attention/max_logit", *metrics.max_attention_logit);
    count("attention/clipped_heads", static_cast<double>(metrics.clipped_heads));
  }
}

void StepRecorder::count(const char* name, double value) {
  Event event = event_now(ctx_, EventKind::kCounter, name);
  event.value = value;
  ctx_.tracer().record(event);
}

void StepRecorder::end_step() {
  hold_at(BoundaryKind::kStepEnd);
  ctx_.tracer().set_stepper(nullptr);
}

// Between processes handing out costs an exchange, so there events accumulate for a second; but they are handed out
// after the last traced step, since a process that dies loses what it has not handed out.
bool StepRecorder::must_gather_traces(int64_t step) const {
  const size_t events = ctx_.tracer().trace().events.size();
  if (!options_.streams || events == 0) return false;
  const bool waits = options_.has_processes && step + 1 < traced_.end;
  return !waits || events > (size_t{1} << 14) || wall_now_ns() - handed_out_ns_ > 1'000'000'000;
}

std::shared_ptr<const std::vector<RankTrace>> StepRecorder::hand_out(TraceCollector& collector, Communicator& world) {
  settle_traced_calls();
  handed_out_ns_ = wall_now_ns();
  return std::make_shared<const std::vector<RankTrace>>(
      collector.collect(world, ctx_.device(), ctx_.tracer().take_events()));
}

RankTrace StepRecorder::take_rest() {
  settle_traced_calls();
  return options_.streams ? ctx_.tracer().take_events() : ctx_.tracer().take();
}

}  // namespace ranklab
