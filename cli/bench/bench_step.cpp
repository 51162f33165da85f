#include "cli/bench/bench_step.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cli/train/gemm.h"
#include "cli/world/make_world.h"
#include "core/base/system.h"
#include "core/parity/watch.h"
#include "core/runtime/engine.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

double megabytes(const char* field) { return static_cast<double>(process_memory_bytes(field)) / (1 << 20); }
double pss_mb() { return megabytes("Pss:"); }
// Private memory without file-backed pages; in the proportional set size, those count less if another process maps
// them, too.
double own_mb() { return megabytes("Anonymous:"); }

class BenchHook : public Hook {
 public:
  BenchHook(StepBenchResult& result, double launch_s, int warmup)
      : result_(result), launch_s_(launch_s), warmup_(warmup) {}
  void on_step_begin(int64_t step) override {
    if (step == 0) result_.startup_s = now_s() - launch_s_;
  }
  void on_step_end(const StepMetrics& m) override {
    if (m.step == 0) {
      result_.first_step_s = now_s() - launch_s_;
      result_.loss_first = m.loss;
      result_.pss_mb = pss_mb();
    }
    if (m.step == warmup_ - 1) {
      result_.warm_own_mb = own_mb();
      cpu_ms_ = cpu_time_ms(CpuTime::kProcess);
    }
    step_ms_.push_back(m.step_wall_ms);
    tokens_ = m.tokens;
  }
  void finish() {
    result_.cpu_ms = (cpu_time_ms(CpuTime::kProcess) - cpu_ms_) /
                     static_cast<double>(step_ms_.size() - static_cast<size_t>(warmup_));
    result_.last_own_mb = own_mb();
    result_.pss_mb = std::max(result_.pss_mb, pss_mb());
    step_ms_.erase(step_ms_.begin(), step_ms_.begin() + warmup_);
    std::sort(step_ms_.begin(), step_ms_.end());
    result_.step_ms = step_ms_[step_ms_.size() / 2];
    result_.tokens_per_s = static_cast<double>(tokens_) / result_.step_ms * 1e3;
  }

 private:
  StepBenchResult& result_;
  double launch_s_;
  int warmup_;
  std::vector<double> step_ms_;
  int64_t tokens_ = 0;
  double cpu_ms_ = 0;  // after the warm-up
};

}  // namespace

StepBenchResult run_step_bench(TrainConfig config, int warmup, int steps, double launch_s) {
  config.train_iters = warmup + steps;
  config.lr_decay = LrDecay::kConstant;
  config.lr_warmup_iters = 0;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  config.mock_data = true;
  RunPlan plan = resolve(config);
  install_booking_allocator();  // as `ranklab train` does
  StepBenchResult result;
  result.gemm = choose_gemm(plan);
  RuntimeEngine engine(with_parity_watch(default_components(make_world(plan.config), plan)), plan);
  const auto hook = std::make_shared<BenchHook>(result, launch_s > 0 ? launch_s : now_s(), warmup);
  engine.add_hook(hook);
  engine.fit();
  hook->finish();
  const ModelConfig& model = plan.config.model;
  const auto tokens = static_cast<double>(plan.config.global_batch_size * model.seq_length);
  result.limit = {tokens * model.training_flops_per_token(model.seq_length), measured_gemm_flops()};
  return result;
}

}  // namespace ranklab
