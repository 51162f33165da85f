// The training loop: builds each rank's parts in order, runs steps, reduces metrics, calls hooks.
// Every run is a World::run; whatever a rank throws ends it with that rank named, and traces of the other ranks are
// kept.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/hooks.h"

namespace ranklab {

class RuntimeEngine {
 public:
  RuntimeEngine(RuntimeComponents components, RunPlan plan);

  void add_hook(std::shared_ptr<Hook> hook) { hooks_.push_back(std::move(hook)); }
  // Asked after every step on global rank 0; true ends the run after that step on all ranks (SIGINT).
  void set_stop_request(std::function<bool()> stop) { stop_ = std::move(stop); }

  // Trains until `steps` optimizer steps are done (default: the plan's train_iters).
  TrainResult fit(int64_t steps = -1);

  const RunPlan& plan() const { return plan_; }

 private:
  class RankLoop;
  RuntimeComponents components_;
  RunPlan plan_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  std::function<bool()> stop_;
};

}  // namespace ranklab
