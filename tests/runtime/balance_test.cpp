// Auxiliary-loss-free balancing on the corpus (arXiv 2408.15664): after 150 steps the busiest of 8 experts gets less
// than 1.3 times its share, and the loss is no worse than that of a router with an auxiliary loss.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backends/cpu_sim/thread_world.h"
#include "core/runtime/engine.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

struct Average {
  double loss = 0, max_over_mean = 0;  // of the last 50 steps
  double early_max_over_mean = 0;      // of steps 15 to 25
};

class LastSteps : public Hook {
 public:
  explicit LastSteps(Average& average) : average_(average) {}
  void on_step_end(const StepMetrics& m) override {
    if (m.step >= 15 && m.step < 25) average_.early_max_over_mean += m.moe_max_over_mean / 10;
    if (m.step < 150) return;
    average_.loss += m.loss / 50;
    average_.max_over_mean += m.moe_max_over_mean / 50;
  }

 private:
  Average& average_;
};

TrainConfig config() {
  TrainConfig c;
  c.model = model_preset("deepseek_v3_tiny");
  c.model.num_layers = 3;
  c.model.mtp_num_layers = 0;
  c.model.seq_length = 64;
  c.parallel = {.world = 2, .tp = 1, .pp = 1, .ep = 2};
  c.global_batch_size = 16;
  c.train_iters = 200;
  c.lr_warmup_iters = 20;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.trace = false;
  return c;
}

Average train(const TrainConfig& c) {
  const RunPlan plan = resolve(c);
  Average average;
  RuntimeEngine engine(default_components(make_thread_world({.size = 2}), plan), plan);
  engine.add_hook(std::make_shared<LastSteps>(average));
  engine.fit();
  return average;
}

TEST(Balance, BiasBalancesWithoutCostInLoss) {
  const Average bias = train(config());
  TrainConfig c = config();
  c.model.moe.expert_bias = false;
  c.model.moe.balancing = LoadBalancing::kAuxLoss;
  c.model.moe.aux_loss_coeff = 0.01;
  const Average aux = train(c);
  EXPECT_LT(bias.max_over_mean, 1.3);
  EXPECT_LT(bias.loss, aux.loss + 0.02);
  // Before the bias has moved far the router uses few experts: balance does not come by itself.
  EXPECT_GT(bias.early_max_over_mean, bias.max_over_mean + 0.4);
}

}  // namespace
}  // namespace ranklab
