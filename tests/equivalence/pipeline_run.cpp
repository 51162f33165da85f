#include "tests/equivalence/pipeline_run.h"

#include "core/runtime/engine.h"
#include "core/runtime/provide.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "tests/cpu_sim/test_world.h"

namespace ranklab {
namespace {

struct Shared {
  PipelineRecord record;
  std::mutex mutex;

  // All copies of a tensor (dp replicas, pipeline ranks that share it) must have the same bits.
  void keep(std::map<TensorKey, at::Tensor>& into, const TensorKey& key, const at::Tensor& tensor) {
    const std::lock_guard lock(mutex);
    const NoCostScope free;  // who comes second compares, too: that must not show on anyone's clock
    const auto [it, is_new] = into.try_emplace(key, kept(tensor));
    if (!is_new && !at::equal(it->second, kept(tensor)))
      record.faults.push_back("copies of " + std::get<2>(key) + " differ at step " + std::to_string(std::get<1>(key)));
  }
};

class RecordingOptimizer : public Optimizer {
 public:
  RecordingOptimizer(std::unique_ptr<Optimizer> inner, std::vector<Parameter*> parameters, int global_rank, int tp_rank,
                     Shared& shared)
      : inner_(std::move(inner)),
        parameters_(std::move(parameters)),
        global_rank_(global_rank),
        tp_rank_(tp_rank),
        shared_(shared) {}
  void step(double lr) override {
    if (step_ == 0) keep_peak();
    keep_weights();
    for (const Parameter* p : parameters_) {
      shared_.keep(shared_.record.grads, {tp_rank_, step_, p->name}, p->data.grad());
    }
    inner_->step(lr);
    ++step_;
    keep_weights();
  }
  void zero_grad() override { inner_->zero_grad(); }

 private:
  void keep_peak() {
    const std::lock_guard lock(shared_.mutex);
    shared_.record.peak_activation_bytes[global_rank_] = thread_memory_book()->peak_bytes(MemoryCategory::kActivations);
  }
  void keep_weights() {
    for (const Parameter* p : parameters_) shared_.keep(shared_.record.weights, {tp_rank_, step_, p->name}, p->data);
  }

  std::unique_ptr<Optimizer> inner_;
  std::vector<Parameter*> parameters_;
  int global_rank_, tp_rank_;
  Shared& shared_;
  int64_t step_ = 0;
};

// Knows the rank, which MakeOptimizer does not.
class RecordingRuntime : public OptimizerRuntime {
 public:
  explicit RecordingRuntime(Shared& shared) : shared_(shared) {}
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    const int global_rank = ctx.global_rank(), tp_rank = ctx.coordinate(Axis::kTp);
    const auto make = [this, global_rank, tp_rank](std::vector<Parameter*> parameters, const RunPlan& p) {
      std::unique_ptr<Optimizer> inner = p.config.optimizer == OptimizerKind::kSgd
                                             ? make_sgd(parameters, {.momentum = 0.9})
                                             : make_adamw(parameters, {.epsilon = 1e-6});
      return std::make_unique<RecordingOptimizer>(std::move(inner), std::move(parameters), global_rank, tp_rank,
                                                  shared_);
    };
    return provide_optimizer(make)->initialize(model, ctx, plan);
  }

 private:
  Shared& shared_;
};

class PipelineMetrics : public Hook {
 public:
  explicit PipelineMetrics(PipelineRecord& record) : record_(record) {}
  void on_train_begin(const RunPlan&, const TrainInfo& info) override { record_.parameters = info.parameters; }
  void on_step_end(const StepMetrics& metrics) override { record_.steps.push_back(metrics); }
  void on_validation(int64_t, double loss) override { record_.validation.push_back(loss); }

 private:
  PipelineRecord& record_;
};

}  // namespace

TrainConfig pipeline_config() {
  TrainConfig c;
  c.model.num_layers = 4;
  c.model.hidden_size = 32;
  c.model.ffn_hidden_size = 48;
  c.model.num_attention_heads = 4;
  c.model.seq_length = 16;
  c.model.init_std = 0.1;
  c.parallel = {.world = 1, .tp = 1};
  c.params_dtype = "fp64";
  c.global_batch_size = 8;
  c.num_microbatches = 8;
  c.train_iters = 2;
  c.lr_warmup_iters = 0;
  c.lr = 1e-3;
  c.clip_grad = 0;  // the norm's last bits depend on the order in which stages are added
  c.mock_data = true;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.device = test_device_setting();
  return c;
}

PipelineRecord train_pipeline(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  Shared shared;
  shared.record.schedule = plan.schedule;
  RuntimeComponents parts = default_components(make_test_world(plan.mesh.world_size()), plan);
  parts.optimizer_runtime = std::make_shared<RecordingRuntime>(shared);
  RuntimeEngine engine(parts, plan);
  engine.add_hook(std::make_shared<PipelineMetrics>(shared.record));
  TrainResult result = engine.fit();
  shared.record.traces = std::move(result.traces);
  shared.record.sample = result.sample;
  return std::move(shared.record);
}

}  // namespace ranklab
