// Shared by the examples: prints a line per step, and a summary at the end. The main programs are next to this file.
#pragma once
#include <cstdio>
#include <memory>

#include "core/runtime/engine.h"

namespace ranklab::examples {

class PrintSteps final : public Hook {
 public:
  void on_train_begin(const RunPlan&, const TrainInfo& info) override {
    std::printf("%s | %s | %lld parameters\n", info.world.c_str(), info.data.c_str(),
                static_cast<long long>(info.parameters));
  }
  void on_validation(int64_t step, double loss) override {
    std::printf("step %3lld  validation %.4f\n", static_cast<long long>(step), loss);
  }
  void on_step_end(const StepMetrics& m) override {
    std::printf("step %3lld  loss %.4f  grad norm %.3f  %8.0f tokens/s  virtual step %.3f ms\n",
                static_cast<long long>(m.step), m.loss, m.grad_norm, m.tokens_per_s, m.virtual_step_ms);
  }
};

// Trains and prints the result. RETURNS: the exit code: 0 if the loss fell.
inline int train(RuntimeComponents parts, const RunPlan& plan) {
  RuntimeEngine engine(std::move(parts), plan);
  engine.add_hook(std::make_shared<PrintSteps>());
  const TrainResult result = engine.fit();
  std::printf("%lld steps: loss %.4f -> %.4f\n", static_cast<long long>(result.steps_done), result.first_loss,
              result.last_loss);
  return result.last_loss < result.first_loss ? 0 : 1;
}

inline int train(std::shared_ptr<World> world, const RunPlan& plan) {
  return train(default_components(std::move(world), plan), plan);
}

}  // namespace ranklab::examples
