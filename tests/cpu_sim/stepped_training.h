// A small training run on 8 rank threads that a test steps through from another thread, and what came of it.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu_sim/thread_world.h"
#include "core/base/error.h"
#include "core/live/stepper.h"
#include "core/runtime/engine.h"
#include "core/runtime/observe/rank_probe.h"
#include "core/sim/memory_scope.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab::cpu_sim_test {

struct TrainingRecord {
  std::vector<double> losses, grad_norms, virtual_ms;
  std::map<int, uint64_t> weights;                    // final, by global rank
  std::map<int, std::vector<int64_t>> virtual_times;  // of every traced event, by global rank
  std::optional<Error> error;

  bool operator==(const TrainingRecord& other) const {
    return losses == other.losses && grad_norms == other.grad_norms && virtual_ms == other.virtual_ms &&
           weights == other.weights && virtual_times == other.virtual_times;
  }
};

// dp 2 x tp 2 x pp 2, 4 microbatches, 3 steps, fp32.
inline TrainConfig stepped_config(const std::string& schedule = "1f1b") {
  TrainConfig c = tiny_config(8, 2);
  c.model.num_layers = 4;
  c.model.ffn_hidden_size = 48;
  c.parallel.pp = 2;
  c.pipeline_schedule = schedule;
  c.num_microbatches = 4;
  c.train_iters = 3;
  return c;
}

class WeightsAtEnd : public CheckpointManager {
 public:
  explicit WeightsAtEnd(TrainingRecord& record) : record_(record) {}
  int64_t load(StepContext&) override { return 0; }
  void save(StepContext& c, int64_t) override {
    const uint64_t hash = make_rank_probe(c.model.registry(), nullptr)->weights_hash();
    const std::lock_guard lock(mutex_);
    record_.weights[c.ctx.global_rank()] = hash;
  }

 private:
  TrainingRecord& record_;
  std::mutex mutex_;
};

class RecordSteps : public Hook {
 public:
  RecordSteps(TrainingRecord& record, std::function<void(int64_t)> on_step)
      : record_(record), on_step_(std::move(on_step)) {}
  void on_step_end(const StepMetrics& m) override {
    record_.losses.push_back(m.loss);
    record_.grad_norms.push_back(m.grad_norm);
    record_.virtual_ms.push_back(m.virtual_step_ms);
    if (on_step_) on_step_(m.step);
  }

 private:
  TrainingRecord& record_;
  std::function<void(int64_t)> on_step_;
};

// Trains to the end. `stepper` and `on_step` (called on rank 0's thread) may be null.
inline TrainingRecord train(const TrainConfig& config, std::shared_ptr<Stepper> stepper = nullptr,
                            std::function<void(int64_t)> on_step = nullptr, ThreadWorldOptions world = {}) {
  const RunPlan plan = resolve(config);
  TrainingRecord record;
  world.size = plan.mesh.world_size();
  world.stepper = stepper;
  RuntimeComponents parts = default_components(make_thread_world(world), plan);
  parts.checkpoint_manager = std::make_shared<WeightsAtEnd>(record);
  RuntimeEngine engine(parts, plan);
  engine.set_stepper(stepper);
  engine.add_hook(std::make_shared<RecordSteps>(record, std::move(on_step)));
  try {
    for (const RankTrace& trace : engine.fit().traces) {
      for (const Event& event : trace.events) record.virtual_times[trace.global_rank].push_back(event.virtual_end_ns);
    }
  } catch (const Error& error) {
    record.error = error;
  }
  return record;
}

// A run in another thread, held at its first boundaries.
class SteppedRun {
 public:
  explicit SteppedRun(const TrainConfig& config, ThreadWorldOptions world = {})
      : stepper_(std::make_shared<Stepper>(config.parallel.world, true)),
        thread_([this, config, world] { record_ = train(config, stepper_, nullptr, world); }) {
    wait();
  }
  ~SteppedRun() {
    stepper_->detach();
    if (thread_.joinable()) thread_.join();
  }
  Stepper& stepper() { return *stepper_; }
  void wait() { ASSERT_TRUE(stepper_->wait_paused(std::chrono::minutes(5))) << who_does_what(); }
  StepperState state() { return stepper_->state(); }
  bool ended() { return state().mode == StepperMode::kEnded; }
  // To the end, whatever breakpoints there are.
  TrainingRecord finish() {
    stepper_->detach();
    thread_.join();
    return record_;
  }

 private:
  std::string who_does_what() {
    std::string out = "neither paused nor ended:";
    for (const auto& rank : state().ranks) out += "\n" + std::string(name(rank.activity)) + " at " + to_text(rank.at);
    return out;
  }

  std::shared_ptr<Stepper> stepper_;
  TrainingRecord record_;
  std::thread thread_;
};

}  // namespace ranklab::cpu_sim_test
