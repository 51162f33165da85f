#include "tests/support/training_record.h"

#include "core/parallel/data/bucket_shard.h"
#include "core/runtime/engine.h"
#include "core/runtime/provide.h"
#include "core/runtime/wrapped_optimizer.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/unseen_scope.h"
#include "core/trace/routing_event.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

// Collects what ranks report about their run. Thread rule: any thread.
struct Recorder {
  explicit Recorder(int64_t steps) : last_step(steps - 1) {}
  bool keeps(int64_t step) const { return step == 0 || step == last_step; }
  void fault(const std::string& text) {
    const std::lock_guard lock(mutex);
    record.faults.push_back(text);
  }
  GatheredTensors& moments_of(const std::string& kind) {
    const std::lock_guard lock(mutex);
    return moments.try_emplace(kind, kind).first->second;
  }

  int64_t last_step;
  std::mutex mutex;
  TrainingRecord record;
  GatheredTensors grads{"gradient"}, weights{"weight"}, parameters{"parameter"};
  std::map<std::string, GatheredTensors> moments;
};

// Records one rank's part of the run. Thread rule: its rank's thread.
class RankRecorder {
 public:
  RankRecorder(Recorder& recorder, CausalLm& model, const RunPlan& plan, const RankContext& ctx)
      : recorder_(recorder),
        rank_(ctx.global_rank()),
        // DiLoCo's replicas differ; the first is recorded.
        is_recorded_(plan.gradient_groups() == 1 || ctx.coordinate(Axis::kDpReplica) == 0) {
    if (plan.zero_stage == 1 || plan.zero_stage == 2) gathered_ = model.registry().parameters();
  }
  void set_optimizer(RankOptimizer& optimizer) {
    optimizer_ = &optimizer;
    const UnseenScope unseen;
    if (is_recorded_) put_weights();  // before training
  }
  void begin_step() { ++step_; }

  // `states`: those of the update, in the order of the rank optimizer's owned_state().
  void before_update(const std::vector<OptimizerState>& states, double factor) {
    if (step_ == 0) note_peak();
    const UnseenScope unseen;
    if (!recorder_.keeps(step_) || !is_recorded_) return;
    const std::vector<OwnedState> owned = optimizer_->owned_state();
    for (size_t i = 0; i < owned.size(); ++i) {
      const at::Tensor grad = states.at(i).parameter->data.grad();
      const at::Tensor used = factor == 1 ? grad : grad.to(c10::promoteTypes(grad.scalar_type(), at::kFloat)) * factor;
      recorder_.grads.put(step_, *owned[i].parameter, owned[i].begin, used.reshape({-1}));
    }
  }

  void after_update() {
    const UnseenScope unseen;
    if (!recorder_.keeps(step_) || !is_recorded_) return;
    optimizer_->settle_parameters();
    put_weights();
    for (const Parameter* parameter : gathered_)
      recorder_.parameters.put(step_, *parameter, 0, parameter->data.detach().flatten());
    if (step_ == recorder_.last_step) put_moments();
  }

 private:
  void note_peak() {
    const std::lock_guard lock(recorder_.mutex);
    recorder_.record.peak_activation_bytes[rank_] = thread_memory_book()->peak_bytes(MemoryCategory::kActivations);
  }
  void put_weights() {
    for (const OwnedState& owned : optimizer_->owned_state()) {
      const Parameter& whole = *owned.parameter;
      recorder_.weights.put(step_, whole, owned.begin, owned.weight);
      if (is_freed(whole.data)) continue;
      const at::Tensor used = whole.data.detach().view({-1}).narrow(0, owned.begin, owned.end - owned.begin);
      if (!at::equal(used, owned.weight.to(used.options())))
        recorder_.fault(whole.name + " is not its master on rank " + std::to_string(rank_));
    }
  }
  void put_moments() {
    int64_t elements = 0;
    for (const OwnedState& owned : optimizer_->owned_state()) {
      for (const auto& [kind, moment] : owned.moments) {
        recorder_.moments_of(kind).put(step_, *owned.parameter, owned.begin, moment);
        elements += moment.numel();
      }
    }
    const std::lock_guard lock(recorder_.mutex);
    recorder_.record.moment_elements[rank_] = elements;
  }

  Recorder& recorder_;
  std::vector<Parameter*> gathered_;  // complete on every rank, and updated in pieces
  int rank_;
  bool is_recorded_;
  RankOptimizer* optimizer_ = nullptr;
  int64_t step_ = -1;
};

class RecordedUpdate final : public Optimizer {
 public:
  RecordedUpdate(std::unique_ptr<Optimizer> inner, std::shared_ptr<RankRecorder> recorder)
      : inner_(std::move(inner)), recorder_(std::move(recorder)) {}
  void step(double lr) override {
    recorder_->before_update(inner_->states(), 1);
    inner_->step(lr);
  }
  bool step_scaled(double lr, double factor) override {
    if (!inner_->scales_in_update()) return false;  // it is scaled first, and step() then records it
    recorder_->before_update(inner_->states(), factor);
    return inner_->step_scaled(lr, factor);
  }
  bool scales_in_update() const override { return inner_->scales_in_update(); }
  void map_matrices_with(MapMatrices map) override { inner_->map_matrices_with(std::move(map)); }
  void set_weight_decay(double weight_decay) override { inner_->set_weight_decay(weight_decay); }
  void zero_grad() override { inner_->zero_grad(); }
  std::vector<OptimizerState> states() const override { return inner_->states(); }
  int64_t updates() const override { return inner_->updates(); }
  void restored(int64_t updates) override { inner_->restored(updates); }

 private:
  std::unique_ptr<Optimizer> inner_;
  std::shared_ptr<RankRecorder> recorder_;
};

class RecordedOptimizer final : public WrappedOptimizer {
 public:
  RecordedOptimizer(std::unique_ptr<RankOptimizer> optimizer, std::shared_ptr<RankRecorder> recorder)
      : WrappedOptimizer(std::move(optimizer)), recorder_(std::move(recorder)) {
    recorder_->set_optimizer(inner());
  }
  void begin_step(int64_t num_microbatches) override {
    recorder_->begin_step();
    inner().begin_step(num_microbatches);
  }
  double finish_step(double lr) override {
    const double norm = inner().finish_step(lr);
    recorder_->after_update();
    return norm;
  }

 private:
  std::shared_ptr<RankRecorder> recorder_;
};

class RecordedRuntime final : public OptimizerRuntime {
 public:
  explicit RecordedRuntime(Recorder& recorder) : recorder_(recorder) {}
  bool makes_values() const override { return true; }
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    const auto rank = std::make_shared<RankRecorder>(recorder_, model, plan, ctx);
    const auto make = [rank](std::vector<Parameter*> parameters, const RunPlan& p) {
      return std::make_unique<RecordedUpdate>(make_optimizer(std::move(parameters), p), rank);
    };
    return std::make_unique<RecordedOptimizer>(provide_optimizer(make)->initialize(model, ctx, plan), rank);
  }

 private:
  Recorder& recorder_;
};

class RecordedMetrics final : public Hook {
 public:
  explicit RecordedMetrics(TrainingRecord& record) : record_(record) {}
  void on_train_begin(const RunPlan&, const TrainInfo& info) override { record_.parameters = info.parameters; }
  void on_step_end(const StepMetrics& metrics) override { record_.steps.push_back(metrics); }
  void on_validation(int64_t, double loss) override { record_.validation.push_back(loss); }

 private:
  TrainingRecord& record_;
};

// Computes the logits before training begins.
class LogitsBefore final : public CheckpointManager {
 public:
  explicit LogitsBefore(Recorder& recorder) : recorder_(recorder) {}
  int64_t load(StepContext& c) override {
    c.model.set_training(false);
    const at::Tensor logits = c.model.logits(uneven_batch(c.ctx, c.plan, 0, 0, c.plan.config.global_batch_size));
    c.model.set_training(true);
    if (c.ctx.global_rank() == 0) recorder_.record.logits = kept(logits);
    return 0;
  }
  void save(StepContext&, int64_t) override {}

 private:
  Recorder& recorder_;
};

// Every rank that has the layer records the same global numbers.
void keep_routing(TrainingRecord& record) {
  for (const RankTrace& trace : record.traces) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kInstant || event.array == 0) continue;
      const std::string& name = trace.names[event.name];
      if (name != kExpertLoadEvent && name != kExpertBiasEvent) continue;
      auto& into = name == kExpertLoadEvent ? record.load : record.bias;
      const auto [it, is_new] = into.try_emplace({event.step, event.tag}, trace.arrays[event.array - 1]);
      if (!is_new && it->second != trace.arrays[event.array - 1]) record.faults.push_back(name + " differs over ranks");
    }
  }
}

void keep_gathered(Recorder& recorder) {
  TrainingRecord& record = recorder.record;
  const auto take = [&](GatheredTensors& tensors) {
    StepTensors taken = tensors.take();
    record.faults.insert(record.faults.end(), tensors.faults().begin(), tensors.faults().end());
    return taken;
  };
  record.grads = take(recorder.grads);
  record.weights = take(recorder.weights);
  take(recorder.parameters);
  for (auto& [kind, tensors] : recorder.moments) record.moments[kind] = take(tensors);
}

}  // namespace

std::vector<double> TrainingRecord::losses() const {
  std::vector<double> all;
  for (const StepMetrics& step : steps) all.push_back(step.loss);
  return all;
}

std::vector<double> TrainingRecord::norms() const {
  std::vector<double> all;
  for (const StepMetrics& step : steps) all.push_back(step.grad_norm);
  return all;
}

TrainingRecord record_training(TrainConfig config, const RecordOptions& options) {
  if (!options.make_world) config.device = test_device_setting();
  RunPlan plan = resolve(config);
  Recorder recorder(config.train_iters);
  recorder.record.schedule = plan.schedule;
  RuntimeComponents parts = default_components(
      options.make_world ? options.make_world(plan.mesh.world_size()) : make_test_world(plan.mesh.world_size()), plan);
  if (options.vocab_size > 0) plan.config.model.vocab_size = options.vocab_size;  // the corpus is of bytes
  parts.optimizer_runtime = std::make_shared<RecordedRuntime>(recorder);
  if (options.model) parts.model_provider = options.model;
  if (options.data) parts.data_provider = options.data;
  if (options.logits) parts.checkpoint_manager = std::make_shared<LogitsBefore>(recorder);
  RuntimeEngine engine(parts, plan);
  engine.add_hook(std::make_shared<RecordedMetrics>(recorder.record));
  TrainResult result = engine.fit();
  recorder.record.traces = std::move(result.traces);
  recorder.record.sample = result.sample;
  keep_gathered(recorder);
  keep_routing(recorder.record);
  return std::move(recorder.record);
}

}  // namespace ranklab
