// A run small enough to repeat many times in a test.
#pragma once
#include "backends/cpu_sim/thread_world.h"
#include "core/runtime/engine.h"

namespace ranklab {

inline TrainConfig tiny_config(int world, int tp) {
  TrainConfig c;
  c.model.num_layers = 2;
  c.model.hidden_size = 32;
  c.model.ffn_hidden_size = 64;
  c.model.num_attention_heads = 4;
  c.model.seq_length = 16;
  c.parallel = {.world = world, .tp = tp};
  c.global_batch_size = 8;
  c.train_iters = 4;
  c.lr_warmup_iters = 0;
  c.mock_data = true;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  return c;
}

// `world` null: rank threads on the host.
inline RuntimeEngine tiny_engine(const TrainConfig& config, std::shared_ptr<World> world = nullptr) {
  const RunPlan plan = resolve(config);
  if (!world) world = make_thread_world({.size = plan.mesh.world_size()});
  return {default_components(std::move(world), plan), plan};
}

// Collects what the engine reports.
class RecordingHook : public Hook {
 public:
  void on_train_begin(const RunPlan&, const TrainInfo& i) override {
    calls.push_back("begin");
    info = i;
  }
  void on_step_begin(int64_t step) override { calls.push_back("step " + std::to_string(step)); }
  void on_step_end(const StepMetrics& m) override {
    calls.push_back("end " + std::to_string(m.step));
    steps.push_back(m);
  }
  void on_validation(int64_t step, double loss) override {
    calls.push_back("validation " + std::to_string(step));
    validation_losses.push_back(loss);
  }
  void on_train_end(const TrainResult&) override { calls.push_back("done"); }

  std::vector<std::string> calls;
  std::vector<StepMetrics> steps;
  std::vector<double> validation_losses;
  TrainInfo info;
};

}  // namespace ranklab
