#include "core/runtime/sentinels/rank_sentinels.h"

#include <utility>

#include "core/comm/event_now.h"
#include "core/runtime/sentinels/parameter_keys.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

bool has_sentinels(const RunPlan& plan, const RankData& data) {
  return plan.config.sentinels.any() && data.has_tokens();
}

RankSentinels::RankSentinels(Parts parts)
    : parts_(std::move(parts)),
      monitor_({.ctx = parts_.step.ctx,
                .plan = parts_.step.plan,
                .model = parts_.step.model,
                .optimizer = parts_.step.optimizer,
                .data = parts_.step.data,
                .world = parts_.world,
                .parameters =
                    all_parameter_keys(parts_.step.model.registry(), parts_.world, parts_.step.ctx.control_device()),
                .sentinel_layers =
                    sentinel_layers(parts_.step.plan.config.model.num_layers, parts_.step.plan.config.sentinels.mode),
                .batch_watches = parts_.batch_watches,
                .wall_ns = parts_.wall_ns,
                .logits = [this](const Batch& batch) { return logits(batch); }},
               parts_.parity_watch) {}

// Like in a validation, without a trace and without dropout.
at::Tensor RankSentinels::logits(const Batch& batch) {
  const NoCostScope free;
  Tracer& tracer = parts_.step.ctx.tracer();
  const bool traced = tracer.enabled();
  tracer.set_enabled(false);
  parts_.step.model.set_training(false);
  const at::Tensor logits = parts_.schedule.logits(parts_.step, batch);
  parts_.step.model.set_training(true);
  parts_.settle();
  tracer.set_enabled(traced);
  return logits;
}

std::shared_ptr<const SentinelReport> RankSentinels::end_step(const StepMetrics& metrics, const StepOutput& output) {
  auto report = monitor_.end_step({.step = parts_.step.step, .metrics = &metrics, .output = &output});
  RankContext& ctx = parts_.step.ctx;
  if (ctx.global_rank() != 0) return report;
  for (const SentinelAlarm& alarm : report->alarms) {
    Event event = event_now(ctx, EventKind::kInstant, "sentinel " + alarm.name);
    event.value = alarm.value;
    ctx.tracer().record(event);
  }
  return report;
}

std::string RankSentinels::act(const SentinelReport& report, int64_t done) {
  if (report.asks(SentinelAction::kCheckpoint)) {
    parts_.checkpoints.save(parts_.step, done);
    saved_ = done;
  }
  const SentinelAlarm* stopping = report.stopping();
  if (stopping == nullptr) return "";
  stopped_ = true;
  return "step " + std::to_string(done - 1) + ": " + stopping->text();
}

}  // namespace ranklab
