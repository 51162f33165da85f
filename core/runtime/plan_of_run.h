// The plan that a run follows: the one it was given, or, where it resumes with other batches than the checkpoint's run
// had, one whose batches go on growing with the samples consumed. Cost: then one copy of the plan for each process.
// Thread rule: on() is called by every rank, at once; the plan stays where it is and as it is.
#pragma once
#include <mutex>
#include <optional>

#include "core/runtime/components.h"

namespace ranklab {

class PlanOfRun {
 public:
  PlanOfRun(const RunPlan& given, CheckpointManager& checkpoints) : given_(given), checkpoints_(checkpoints) {}
  // Collective. Throws kInvalidArgument for a batch that the layout cannot split, and what finding a checkpoint does.
  const RunPlan& on(RankContext& ctx);

 private:
  const RunPlan& given_;
  CheckpointManager& checkpoints_;
  std::mutex mutex_;
  std::optional<RunPlan> changed_;
};

}  // namespace ranklab
