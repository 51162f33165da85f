// The plan that a run follows: either the given one, or, if it resumes with other batches than the checkpoint's run
// had, a plan that goes on from the samples consumed. Cost: in the latter case one copy of the plan per process.
// Thread rule: on() is called by every rank, concurrently; the plan's address and contents do not change
// afterwards.
#pragma once
#include <mutex>
#include <optional>

#include "core/runtime/components.h"

namespace ranklab {

class PlanOfRun {
 public:
  PlanOfRun(const RunPlan& given, CheckpointManager& checkpoints) : given_(given), checkpoints_(checkpoints) {}
  // Collective. Throws kInvalidArgument for a batch that the layout cannot split, and whatever finding a checkpoint
  // throws.
  const RunPlan& on(RankContext& ctx);

 private:
  const RunPlan& given_;
  CheckpointManager& checkpoints_;
  std::mutex mutex_;
  std::optional<RunPlan> changed_;
};

}  // namespace ranklab
