// A family of sentinels' measurements on one rank. In each step it fills its slots of a table, all ranks exchange the
// table, and from the whole of it every rank derives the same values. Families that look at tensors do so in some steps
// alone. What a value owes to the steps before goes into the run's checkpoints, so that a resumed run measures what one
// that never stopped does; not so what is the machine's (times, memory). Thread rule: its rank's thread.
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

// What a family may look at, of a rank; the objects outlive it.
struct SentinelContext {
  RankContext& ctx;
  const RunPlan& plan;
  CausalLm& model;
  RankOptimizer& optimizer;
  RankData& data;
  Communicator& world;                      // untraced
  std::vector<std::string> parameters;      // keys of the parameters of all ranks (parameter_keys.h), ascending
  std::vector<int64_t> sentinel_layers;     // first, middle, last; in debug all
  std::vector<BatchWatch*>& batch_watches;  // whom the run's data shows the batches of this step
  std::function<int64_t()> wall_ns;         // the clock of wall times
  // The logits of a batch of whole sequences, the same on all ranks; collective, outside of the timeline.
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
  // Before the forwards of a step that it looks at.
  virtual void begin(int64_t /*step*/) {}
  // After its update: this rank's slots, all unset before.
  virtual void fill(const SentinelStep& step, RankTable& table) = 0;
  virtual void report(const SentinelStep& step, const RankTable& table, SentinelReport& out) = 0;

  // What it wants to be shown in the steps that it looks at; null: nothing.
  virtual ModuleHook* module_hook() { return nullptr; }
  virtual UpdateWatch* update_watch() { return nullptr; }
  virtual BatchWatch* batch_watch() { return nullptr; }
  // Told on all ranks, and on rank 0, with the step after it.
  virtual void validated(double /*loss*/) {}
  virtual void checkpointed(const CheckpointNote& /*note*/) {}

  // What later values are made from, under names of its own; and a run that goes on from there.
  virtual void keep(RunningValues& /*values*/) const {}
  virtual void go_on_from(const RunningValues& /*values*/) {}
};

// `otherwise`: where a checkpoint has none.
double running_value(const RunningValues& values, const std::string& name, double otherwise);

// Makes a family and reserves its slots.
using MakeFamily = std::unique_ptr<SentinelFamily> (*)(SentinelContext&, RankTable&);

}  // namespace ranklab
