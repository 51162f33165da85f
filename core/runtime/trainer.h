// A run as a loop of its caller's, as PyTorch programs write it:
//   Trainer trainer(default_components(world, plan), plan);
//   for (const StepMetrics& metrics : trainer.train()) {
//     ...
//     if (metrics.step % 1000 == 999) trainer.save_checkpoint();
//   }
// The engine runs on a thread of the trainer's; after each step rank 0 waits until the loop asks for the next one, so
// that its body sees the run between two steps. A loop that is left early ends the run after the step that is then
// under way. The body counts as time in which ranks make no call (--hang-timeout). Cost: a thread, two wake-ups a step.
// Thread rule: one thread uses it.
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
  // Starts training until `steps` steps are done (default: the plan's train_iters). Call once.
  Steps train(int64_t steps = -1);
  // In the loop's body: saves the state after this step into the plan's save_dir, before the next step begins.
  void save_checkpoint();
  // Ends the run and waits for it; throws what the run threw, if the loop has not. The destructor does the same but
  // throws nothing.
  TrainResult shutdown();

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

// Steps as they are done: an input range.
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
  // Runs the first step. Throws what the run throws, as the iterator's increment does.
  Iterator begin() const { return Iterator(*run_); }
  End end() const { return {}; }

 private:
  Run* run_;
};

}  // namespace ranklab
