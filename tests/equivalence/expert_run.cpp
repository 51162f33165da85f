#include "tests/equivalence/expert_run.h"

#include <algorithm>
#include <mutex>

#include "core/runtime/engine.h"
#include "core/runtime/provide.h"
#include "core/sim/aten.h"
#include "core/trace/routing_event.h"
#include "tests/cpu_sim/test_world.h"

namespace ranklab {
namespace {

struct Whole {
  at::Tensor tensor, known;
};

class Store {
 public:
  void put(int64_t step, const Parameter& p, const at::Tensor& on_device) {
    const at::Tensor local = kept(on_device);
    const std::lock_guard lock(mutex_);
    const at::NoGradGuard no_grad;
    Whole& whole = tensors_[{step, p.name}];
    if (!whole.tensor.defined()) {
      whole.tensor = at::zeros(p.partition.global_shape, local.options().requires_grad(false));
      whole.known = at::zeros(p.partition.global_shape, at::kBool);
    }
    auto ranges = p.partition.ranges;
    const int dim = std::max(p.partition.dim, 0);
    if (p.partition.replicated()) ranges = {{0, whole.tensor.size(0)}};
    int64_t at = 0;
    for (const auto& [begin, end] : ranges) {
      const at::Tensor to = whole.tensor.narrow(dim, begin, end - begin);
      const at::Tensor known = whole.known.narrow(dim, begin, end - begin);
      const at::Tensor from = local.narrow(dim, at, end - begin);
      if (known.logical_and(to.ne(from)).any().item<bool>())
        faults.push_back("copies of " + p.name + " differ at step " + std::to_string(step));
      to.copy_(from);
      known.fill_(true);
      at += end - begin;
    }
  }
  std::map<StepTensor, at::Tensor> take() {
    std::map<StepTensor, at::Tensor> out;
    for (auto& [key, whole] : tensors_) {
      if (!whole.known.all().item<bool>()) faults.push_back(key.second + " is not whole");
      out[key] = whole.tensor;
    }
    return out;
  }
  std::vector<std::string> faults;

 private:
  std::mutex mutex_;
  std::map<StepTensor, Whole> tensors_;
};

struct Stores {
  Store grads, weights;
};

class StoringOptimizer : public Optimizer {
 public:
  StoringOptimizer(std::unique_ptr<Optimizer> inner, std::vector<Parameter*> parameters, Stores& stores)
      : inner_(std::move(inner)), parameters_(std::move(parameters)), stores_(stores) {}
  void step(double lr) override {
    for (const Parameter* p : parameters_) stores_.grads.put(step_, *p, p->data.grad());
    inner_->step(lr);
    for (const Parameter* p : parameters_) stores_.weights.put(step_, *p, p->data);
    ++step_;
  }
  void zero_grad() override { inner_->zero_grad(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  std::vector<Parameter*> parameters_;
  Stores& stores_;
  int64_t step_ = 0;
};

class ExpertMetrics : public Hook {
 public:
  explicit ExpertMetrics(ExpertRecord& record) : record_(record) {}
  void on_train_begin(const RunPlan&, const TrainInfo& info) override { record_.parameters = info.parameters; }
  void on_step_end(const StepMetrics& metrics) override { record_.steps.push_back(metrics); }

 private:
  ExpertRecord& record_;
};

// Every rank that has the layer records the same global numbers.
void keep_routing(ExpertRecord& record) {
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

}  // namespace

TrainConfig expert_config() {
  TrainConfig c;
  c.model = {
      .num_layers = 3,
      .hidden_size = 32,
      .ffn_hidden_size = 48,
      .num_attention_heads = 4,
      .seq_length = 16,
      .init_std = 0.1,
      .moe = {
          .num_experts = 8, .topk = 2, .ffn_hidden_size = 16, .shared_ffn_hidden_size = 16, .first_dense_layers = 1}};
  c.parallel = {.world = 1, .tp = 1, .pp = 1};
  c.params_dtype = "fp64";
  c.optimizer = OptimizerKind::kSgd;
  c.global_batch_size = 16;
  c.train_iters = 3;
  c.lr_warmup_iters = 0;
  c.lr = 3e-2;
  c.clip_grad = 0;
  c.mock_data = true;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.ddp_bucket_bytes = 8192;
  c.device = test_device_setting();
  return c;
}

ExpertRecord train_experts(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  Stores stores;
  ExpertRecord record;
  RuntimeComponents parts = default_components(make_test_world(plan.mesh.world_size()), plan);
  parts.optimizer_runtime = provide_optimizer([&](std::vector<Parameter*> parameters, const RunPlan& p) {
    std::unique_ptr<Optimizer> inner = p.config.optimizer == OptimizerKind::kSgd
                                           ? make_sgd(parameters, {.momentum = 0.9})
                                           : make_adamw(parameters, {.epsilon = 1e-6});
    return std::make_unique<StoringOptimizer>(std::move(inner), std::move(parameters), stores);
  });
  RuntimeEngine engine(parts, plan);
  engine.add_hook(std::make_shared<ExpertMetrics>(record));
  record.traces = engine.fit().traces;
  record.grads = stores.grads.take();
  record.weights = stores.weights.take();
  record.faults = stores.grads.faults;
  record.faults.insert(record.faults.end(), stores.weights.faults.begin(), stores.weights.faults.end());
  keep_routing(record);
  return record;
}

TrainConfig on_one_rank(TrainConfig c) {
  const RunPlan plan = resolve(c);
  c.parallel = {.world = 1, .tp = 1, .pp = 1};
  c.pipeline_schedule = "1f1b";
  c.virtual_stages = 1;
  c.pipeline_layout.clear();
  c.sequence_parallel.reset();
  c.moe_dispatcher = "alltoall";
  c.overlap_moe = false;
  c.micro_batch_size = 0;
  c.num_microbatches = plan.num_microbatches * plan.dp();
  return c;
}

}  // namespace ranklab
