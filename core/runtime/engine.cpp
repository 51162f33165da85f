#include "core/runtime/engine.h"

#include <ATen/Parallel.h>

#include "core/base/error.h"
#include "core/config/batch_choice.h"
#include "core/config/lr_choice.h"
#include "core/config/pipeline_layout.h"
#include "core/config/requirements.h"
#include "core/museum/exhibit.h"
#include "core/nn/attention/softmax_attention.h"
#include "core/nn/initial_values.h"
#include "core/nn/recomputable_output.h"
#include "core/runtime/count_parameters.h"
#include "core/runtime/document_data.h"
#include "core/runtime/memory/counters.h"
#include "core/runtime/observe/rank_probe.h"
#include "core/runtime/observe/rank_taps.h"
#include "core/runtime/observe/rank_types.h"
#include "core/runtime/record/broken_step.h"
#include "core/runtime/record/step_recorder.h"
#include "core/runtime/record/trace_span.h"
#include "core/runtime/sentinels/rank_sentinels.h"
#include "core/runtime/step_metrics.h"
#include "core/runtime/text/run_scorer.h"
#include "core/runtime/text/text_codec.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

// One rank's part of fit().
class RuntimeEngine::RankLoop {
 public:
  RankLoop(RuntimeEngine& engine, Endpoint& endpoint)
      : engine_(engine),
        bugs_(bugs_named(engine.plan_.config.inject)),
        ctx_(endpoint, engine.plan_.mesh, observe(engine)),
        plan_(engine.plan_of_run_->on(ctx_)),
        lr_schedule_(lr_schedule_of(plan_.config, plan_.ramp)),
        weight_decay_(weight_decay_schedule_of(plan_.config, plan_.ramp)),
        world_(endpoint.communicator(plan_.mesh.group(Axis::kWorld, endpoint.global_rank()))),
        metrics_(*world_, ctx_, plan_, wall_peak_flops(*engine.components_.world, plan_)),
        recorder_(ctx_, plan_,
                  {.stepper = engine.stepper_.get(),
                   .sink = engine.live_feed_.get(),
                   .streams = engine.streams_traces_,
                   .has_processes = engine.components_.world->local_ranks() < world_->size()}),
        wall_ns_(engine.wall_ns_ ? engine.wall_ns_ : wall_now_ns) {}
  ~RankLoop() {
    if (engine_.stepper_) engine_.stepper_->set_probe(ctx_.global_rank(), nullptr);
    if (std::uncaught_exceptions() > 0) leave_broken_step(ctx_, *engine_.collector_);
  }

  // One rank of each process writes to `result`. `steps`: below 0, the plan's.
  void run(int64_t steps, TrainResult& result) {
    if (steps < 0) steps = steps_of_run(plan_);
    build();
    StepContext context{ctx_, plan_, *model_, *data_, *optimizer_, 0, 0, &recorder_.modules(), schedule_.get()};
    watch(context, steps);
    const int64_t first = engine_.components_.checkpoint_manager->load(context);
    // Until here processes agreed on a checkpoint and shards were gathered, which belongs to no step.
    metrics_.settle();
    recorder_.begin_run(first);
    if (leads()) announce(first);
    if (reports()) result.steps_done = first;
    bool stop = false;
    int64_t done = first;
    for (int64_t step = first; step < steps && !stop; ++step) {
      context.step = step;
      const MetricReducer::Outcome outcome = train_step(context, step == first && engine_.partitions_ != nullptr);
      stop = outcome.stop;
      if (reports()) note(outcome, step == first, result);
      recorder_.end_step();
      if (outcome.traces) hand_out_traces();
      validate_if_due(context, steps);
      done = step + 1;
      context.loss = outcome.metrics.loss;
      engine_.components_.checkpoint_manager->after_step(context, done);
      stop = act(outcome.metrics, done, result) || stop;
      tell_checkpoints();
    }
    recorder_.stop();
    if (!sentinels_ || !sentinels_->settled_checkpoint(done))
      engine_.components_.checkpoint_manager->save(context, done);
    tell_checkpoints();
    if (!stop && engine_.finale_) engine_.finale_(context);
    optimizer_->settle_parameters();
    if (!stop) sample(context, result);
    engine_.collector_->leave(*world_, ctx_.device(), recorder_.take_rest());
  }

 private:
  static ObserveOptions observe(const RuntimeEngine& engine) {
    const RunPlan& plan = engine.plan_;
    return {.virtual_time = engine.components_.world->can(Capability::kVirtualTime) && plan.config.virtual_time,
            .trace = plan.config.trace || engine.watched(),
            .profile = &plan.profile,
            .gpus_per_node = plan.config.gpus_per_node};
  }

  bool leads() const { return ctx_.global_rank() == 0; }
  // One rank of every process fills in that process's result.
  bool reports() const { return leads() || engine_.components_.world->local_ranks() == 1; }

  void build() {
    const RuntimeComponents& parts = engine_.components_;
    set_thread_memory_book(std::make_shared<MemoryBook>(/*books_host=*/ctx_.device().is_cpu()));
    if (plan_.config.threads_per_rank > 1) at::set_num_threads(plan_.config.threads_per_rank);
    const NoCostScope free;
    model_ = parts.model_provider->build_model(ctx_, plan_);
    for (Parameter* parameter : model_->registry().parameters()) {
      std::vector<int> holders = pipeline_holders(plan_, parameter->unit);
      if (holders.size() > 1) parameter->pipeline_ranks = std::move(holders);
    }
    data_ = with_documents(parts.data_provider->build_data(ctx_, plan_), plan_.config.documents);
    if (has_sentinels(plan_, *data_)) data_ = watched_data(std::move(data_), batch_watches_, wall_ns_);
    if (!parts.optimizer_runtime->makes_values()) make_values(model_->registry());
    optimizer_ = parts.optimizer_runtime->initialize(*model_, ctx_, plan_);
    RANKLAB_CHECK(!plan_.config.diloco.enabled() || optimizer_->makes_outer_updates(), ErrorKind::kInvalidArgument,
                  .where = "--diloco-sync-steps", .what = "this program's optimizer makes no outer updates",
                  .got = "a RankOptimizer without them", .want = "DiLoCo's replicas are synchronized by outer updates",
                  .fix = "wrap it by with_outer_updates() of core/runtime/outer_optimizer.h, or leave DiLoCo out");
    schedule_ = parts.schedule_selector->select(plan_);
    memory_ = std::make_unique<MemoryCounters>(ctx_, plan_.profile.memory_bytes);
    parameters_ = count_parameters(model_->registry(), ctx_, *world_);
    if (engine_.stepper_) engine_.stepper_->set_probe(ctx_.global_rank(), make_probe());
  }

  void watch(StepContext& context, int64_t steps) {
    const std::string& folder = plan_.config.log_dir.empty() ? engine_.output_folder_ : plan_.config.log_dir;
    taps_ = std::make_unique<RankTaps>(context, engine_.watches_,
                                       DumpPlace{folder.empty() ? "." : folder, engine_.lost_}, *world_);
    if (!has_sentinels(plan_, *data_)) return;
    RANKLAB_CHECK(steps == 0 || plan_.config.sentinels.parity_interval == 0 || engine_.components_.parity_watch,
                  ErrorKind::kInvalidArgument, .where = "--watch", .what = "this program provides no parity watch",
                  .got = "no RuntimeComponents::parity_watch", .want = "parity_watch() of core/parity/watch.h",
                  .fix = "give it to the engine, or leave --watch out");
    sentinels_ =
        std::make_unique<RankSentinels>(RankSentinels::Parts{.step = context,
                                                             .schedule = *schedule_,
                                                             .world = *world_,
                                                             .settle = [this] { metrics_.settle(); },
                                                             .wall_ns = wall_ns_,
                                                             .batch_watches = batch_watches_,
                                                             .checkpoints = *engine_.components_.checkpoint_manager,
                                                             .parity_watch = engine_.components_.parity_watch});
    context.sentinels = &sentinels_->monitor();
  }

  bool act(const StepMetrics& metrics, int64_t done, TrainResult& result) {
    if (!metrics.sentinels) return false;
    if (metrics.sentinels->asks(SentinelAction::kDump)) taps_->dump_state(metrics.step);
    const std::string stopped = sentinels_->act(*metrics.sentinels, done);
    if (reports() && !stopped.empty()) result.stopped = stopped;
    return !stopped.empty();
  }

  std::shared_ptr<const RankProbe> make_probe() {
    if (!plan_.zero().parameters) return make_rank_probe(model_->registry(), thread_memory_book());
    return make_rank_probe(model_->registry(), thread_memory_book(), [this] {
      std::vector<at::Tensor> weights;
      for (const OwnedState& state : optimizer_->owned_state()) weights.push_back(state.weight);
      return weights;
    });
  }

  void hand_out_traces() {
    const auto piece = recorder_.hand_out(*engine_.collector_, *world_);
    if (leads()) each_hook([&](Hook& hook) { hook.on_traces(piece); });
  }

  // `typed`: the types of this step's tensors are checked.
  MetricReducer::Outcome train_step(StepContext& context, bool typed) {
    const int64_t step = context.step;
    recorder_.begin_step(step, model_->registry().hooks());
    taps_->begin_step(step);
    if (sentinels_) sentinels_->begin_step(step);
    recorder_.hold_at(BoundaryKind::kStepBegin);
    if (leads()) each_hook([&](Hook& hook) { hook.on_step_begin(step); });
    LossScaler* const scaler = optimizer_->loss_scaler();
    optimizer_->set_step(step);
    const double lr = lr_schedule_.at(step, optimizer_->skipped());
    optimizer_->set_weight_decay(weight_decay_.at(step, optimizer_->skipped()));
    const double scale = scaler ? scaler->scale() : 0;
    auto types = typed ? std::make_unique<RankTypes>(context, *engine_.partitions_, engine_.type_report_) : nullptr;
    StepOutput output;
    double norm = 0;
    {
      const TraceSpan span(ctx_, EventKind::kPhase, "step");
      memory_->record();
      {
        const TraceSpan passes(ctx_, EventKind::kPhase, "forward-backward");
        output = schedule_->run_step(context);
      }
      memory_->record();
      recorder_.observe_loss(output);
      norm = optimizer_->finish_step(lr);
      if (sentinels_ && sentinels_->monitor().reads_parameters(step)) optimizer_->settle_parameters();
      if (scaler) {
        output.loss_scale = scale;
        output.skipped = scaler->overflowed();
        output.skipped_steps = scaler->skipped_steps();
      }
      output.report = model_->end_step();
      output.mtp_loss_sum = model_->take_mtp_loss_sum();
      memory_->record();
    }
    types.reset();
    taps_->end_step();
    const bool stop_requested = reports() && engine_.stop_ && engine_.stop_();
    MetricReducer::Outcome outcome =
        metrics_.reduce(step, output, norm, lr, {.stop = stop_requested, .traces = recorder_.must_gather_traces(step)});
    // All ranks have exchanged data since then, so the report is complete.
    if (typed && plan_.config.check_gradient_types) engine_.type_report_->check();
    if (plan_.config.zero_debug) outcome.metrics.zero = optimizer_->zero_counters();
    recorder_.count(outcome.metrics);
    if (sentinels_) outcome.metrics.sentinels = sentinels_->end_step(outcome.metrics, output);
    return outcome;
  }

  void note(const MetricReducer::Outcome& outcome, bool first, TrainResult& result) {
    if (first) result.first_loss = outcome.metrics.loss;
    result.last_loss = outcome.metrics.loss;
    result.steps_done = outcome.metrics.step + 1;
    result.interrupted = outcome.stop;
    if (leads()) each_hook([&](Hook& hook) { hook.on_step_end(outcome.metrics); });
  }

  void tell_checkpoints() {
    if (!leads()) return;
    for (const CheckpointNote& note : engine_.components_.checkpoint_manager->take_notes()) {
      if (sentinels_) sentinels_->monitor().checkpointed(note);
      each_hook([&](Hook& hook) { hook.on_checkpoint(note); });
    }
  }

  void validate_if_due(StepContext& context, int64_t steps) {
    const int64_t interval = plan_.config.eval_interval;
    const int64_t done = context.step + 1;
    if (interval == 0 || !data_->has_validation() || (done % interval != 0 && done != steps)) return;
    recorder_.stop();
    optimizer_->settle_parameters();
    model_->set_training(false);
    StepOutput sum;
    for (int64_t i = 0; i < plan_.config.eval_iters; ++i) {
      const StepOutput one = schedule_->run_validation(context, i);
      sum.loss_sum += one.loss_sum;
      sum.tokens += one.tokens;
    }
    model_->set_training(true);
    model_->take_mtp_loss_sum();  // discards the loss of the validation, which is not part of the next step
    const double loss = metrics_.mean_loss(sum);
    if (sentinels_) sentinels_->monitor().validated(loss);
    if (leads()) each_hook([&](Hook& hook) { hook.on_validation(context.step, loss); });
  }

  void announce(int64_t first_step) {
    TrainInfo info;
    info.world = engine_.components_.world->describe();
    info.on_gpu = engine_.components_.world->gpus() > 0;
    info.data = engine_.components_.data_provider->describe();
    info.parameters = parameters_;
    info.first_step = first_step;
    info.loaded = engine_.components_.checkpoint_manager->loaded();
    each_hook([&](Hook& hook) { hook.on_train_begin(plan_, info); });
  }

  // Ranks that do not take part wait at the end of the run.
  void sample(StepContext& context, TrainResult& result) {
    const TrainConfig& c = plan_.config;
    std::shared_ptr<TextCodec> text = engine_.components_.data_provider->text();
    if (!text) text = make_text_codec({}, c.model.vocab_size);
    if (c.sample_tokens == 0 || !text || text->vocab_size() > c.model.vocab_size) return;
    if (!works_on_text(ctx_, plan_)) return;
    const std::vector<int64_t> tokens = sample_of_run(context, text->prompt(c.sample_prompt));
    if (leads()) result.sample = text->shown(tokens);
  }

  template <typename Call>
  void each_hook(Call call) {
    for (const auto& hook : engine_.hooks_) call(*hook);
  }

  RuntimeEngine& engine_;
  InjectedBugs bugs_;  // declared before everything that may have a bug
  RankContext ctx_;
  const RunPlan& plan_;
  const LrSchedule lr_schedule_;
  const WeightDecaySchedule weight_decay_;
  CommunicatorPtr world_;
  MetricReducer metrics_;
  StepRecorder recorder_;
  std::function<int64_t()> wall_ns_;
  std::unique_ptr<CausalLm> model_;
  std::unique_ptr<RankData> data_;
  std::unique_ptr<RankOptimizer> optimizer_;
  std::unique_ptr<ScheduleStrategy> schedule_;
  std::unique_ptr<MemoryCounters> memory_;
  std::unique_ptr<RankTaps> taps_;
  std::vector<BatchWatch*> batch_watches_;    // observers to which data_ shows its batches
  std::unique_ptr<RankSentinels> sentinels_;  // null: off
  int64_t parameters_ = 0;                    // total of the whole model
};

RuntimeEngine::RuntimeEngine(RuntimeComponents components, RunPlan plan)
    : components_(std::move(components)), plan_(std::move(plan)) {
  RANKLAB_CHECK(components_.world && components_.model_provider && components_.data_provider &&
                    components_.optimizer_runtime && components_.schedule_selector && components_.checkpoint_manager,
                ErrorKind::kInvalidArgument, .where = "RuntimeEngine", .what = "a component is missing",
                .got = "a null pointer", .want = "all six", .fix = "start from default_components()");
  RANKLAB_CHECK(
      components_.world->size() == plan_.mesh.world_size(), ErrorKind::kInvalidArgument, .where = "RuntimeEngine",
      .what = "the world and the mesh differ in size",
      .got = std::to_string(components_.world->size()) + " ranks, mesh of " + std::to_string(plan_.mesh.world_size()));
  check_world(plan_.config, components_.world->capabilities(), components_.world->describe());
  use_gpu_attention(gpu_attention_named(plan_.config.attention_backend));
  keep_cheap_outputs(plan_.config.keep_cheap_outputs);
}

TrainResult RuntimeEngine::fit(int64_t steps) {
  TrainResult result;
  const World& world = *components_.world;
  collector_ = std::make_unique<TraceCollector>(*components_.world);
  if (plan_.config.check_gradient_types && !type_report_) type_report_ = std::make_shared<TypeReport>();
  if (type_report_) partitions_ = std::make_unique<RankPartitions>(plan_.mesh);
  plan_of_run_ = std::make_unique<PlanOfRun>(plan_, *components_.checkpoint_manager);
  const int64_t begin_ns = wall_now_ns();
  const auto run_rank = [&](Endpoint& endpoint) { RankLoop(*this, endpoint).run(steps, result); };
  run_keeping_broken_step(*components_.world, run_rank, *collector_, streams_traces_ ? hooks_ : decltype(hooks_)());
  result.total_wall_s = static_cast<double>(wall_now_ns() - begin_ns) * 1e-9;
  if (!world.has_rank_zero()) return result;
  const auto last = std::make_shared<const std::vector<RankTrace>>(collector_->take());
  for (const auto& hook : hooks_) hook->on_traces(last);
  if (!streams_traces_) result.traces = *last;
  for (const auto& hook : hooks_) hook->on_train_end(result);
  return result;
}

}  // namespace ranklab
