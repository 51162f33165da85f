// A family of sentinels measures a group of related numbers on one rank. In each step it fills its slots of a table,
// all ranks exchange the table, and from the complete table every rank derives the same values. Families that inspect
// tensors do so only in some steps. What a value needs from earlier steps is saved in the run's checkpoints, so that a
// resumed run measures the same as a run that never stopped; this does not apply to properties of the machine (times,
// memory). Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/sentinels/rank_table.h"
#include "core/runtime/sentinels/report.h"
#include "core/runtime/sentinels/watched_data.h"

namespace ranklab {

// What a family may use of its rank; the objects outlive the family.
struct SentinelContext {
  RankContext& ctx;
  const RunPlan& plan;
  CausalLm& model;
  RankOptimizer& optimizer;
  RankData& data;
  Communicator& world;                      // untraced
  std::vector<std::string> parameters;      // keys of the parameters of all ranks (parameter_keys.h), ascending
  std::vector<int64_t> sentinel_layers;     // first, middle, last; in debug mode all
  std::vector<BatchWatch*>& batch_watches;  // observers to which the run's data shows the batches of this step
  std::function<int64_t()> wall_ns;         // the clock of wall times
  // The logits for a batch of whole sequences, the same on all ranks. Collective; not part of the timeline.
  std::function<at::Tensor(const Batch&)> logits;
};

struct SentinelStep {
  int64_t step = 0;
  const StepMetrics* metrics = nullptr;  // wall times in it are this rank's
  const StepOutput* output = nullptr;
};

class SentinelFamily {
 public:
  virtual ~SentinelFamily() = default;
  // Called before the forwards of a step that the family inspects.
  virtual void begin(int64_t /*step*/) {}
  // Called after the step's update: sets this rank's slots, all of which are unset before.
  virtual void fill(const SentinelStep& step, RankTable& table) = 0;
  virtual void report(const SentinelStep& step, const RankTable& table, SentinelReport& out) = 0;

  // Whether fill() reads whole parameters, all of which the update's gathers must have reached by then.
  virtual bool reads_parameters() const { return false; }

  // What the family needs to observe in the steps that it inspects; null: nothing.
  virtual ModuleHook* module_hook() { return nullptr; }
  virtual UpdateWatch* update_watch() { return nullptr; }
  virtual BatchWatch* batch_watch() { return nullptr; }
  // The first is called on all ranks, the second on rank 0, before the next step.
  virtual void validated(double /*loss*/) {}
  virtual void checkpointed(const CheckpointNote& /*note*/) {}

  // Saves the values from which later measurements are computed, under the family's own names; and restores them in a
  // run that resumes there.
  virtual void keep(RunningValues& /*values*/) const {}
  virtual void go_on_from(const RunningValues& /*values*/) {}
};

// `otherwise`: the value to use where a checkpoint has none.
double running_value(const RunningValues& values, const std::string& name, double otherwise);

// Makes a family and reserves its slots.
using MakeFamily = std::unique_ptr<SentinelFamily> (*)(SentinelContext&, RankTable&);

}  // namespace ranklab
