// A run written as a loop in the caller's code, like in PyTorch programs:
//   Trainer trainer(default_components(world, plan), plan);
//   for (const StepMetrics& metrics : trainer.train()) {
//     ...
//     if (metrics.step % 1000 == 999) trainer.save_checkpoint();
//   }
// The engine runs on a thread of the trainer. After each step rank 0 waits until the loop requests the next one, so the
// loop's body sees the run between two steps. Leaving the loop early ends the run after the step that is then in
// progress. The body counts as time in which ranks make no call (--hang-timeout). Cost: a thread, and two wake-ups per
// step. Thread rule: one thread uses it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "core/runtime/engine.h"

namespace ranklab {

class Trainer {
 public:
  // REQUIRES: all ranks of the world live in this process (kInvalidArgument otherwise). For save_checkpoint() the plan
  // has a save_dir.
  Trainer(RuntimeComponents parts, RunPlan plan);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  class Steps;
  // Starts training until `steps` steps are done (default: the plan's, steps_of_run()). Call once.
  Steps train(int64_t steps = -1);
  // Call in the loop's body: saves the state after this step into the plan's save_dir, before the next step begins.
  void save_checkpoint();
  // Ends the run and waits for it; throws the run's error, unless the loop has already thrown it. The destructor does
  // the same but throws nothing.
  TrainResult shutdown();

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

// An input range of the steps as they are completed.
class Trainer::Steps {
 public:
  struct End {};
  class Iterator {
   public:
    explicit Iterator(Run& run);
    const StepMetrics& operator*() const { return *metrics_; }
    const StepMetrics* operator->() const { return &*metrics_; }
    Iterator& operator++();
    bool operator==(const End&) const { return !metrics_.has_value(); }

   private:
    Run* run_;
    std::optional<StepMetrics> metrics_;
  };

  explicit Steps(Run& run) : run_(&run) {}
  // Runs the first step. Throws the run's error, as does the iterator's increment.
  Iterator begin() const { return Iterator(*run_); }
  End end() const { return {}; }

 private:
  Run* run_;
};

}  // namespace ranklab
