// The sentinels of one rank of a run: created from the run's parts, evaluated at the end of each step, together with
// the actions that firing sentinels request. Thread rule: its rank's thread; construction, end_step() and act() are
// collective.
#pragma once
#include <functional>
#include <memory>

#include "core/runtime/components.h"
#include "core/runtime/sentinels/monitor.h"

namespace ranklab {

// False if they are off, or if tensors have no values (core/plan).
bool has_sentinels(const RunPlan& plan, const RankData& data);

class RankSentinels {
 public:
  // REQUIRES: has_sentinels().
  struct Parts {
    StepContext& step;  // must outlive this
    ScheduleStrategy& schedule;
    Communicator& world;  // untraced
    // call after work of all ranks outside of steps, for which they waited for each other
    std::function<void()> settle;
    std::function<int64_t()> wall_ns;         // for the sentinels of wall time
    std::vector<BatchWatch*>& batch_watches;  // observers to which the run's data shows its batches
    CheckpointManager& checkpoints;
    const MakeOwnFamily& parity_watch;
  };
  explicit RankSentinels(Parts parts);

  void begin_step(int64_t step) { monitor_.begin_step(step); }
  // Measures; the alarms are also instants on rank 0's timeline.
  std::shared_ptr<const SentinelReport> end_step(const StepMetrics& metrics, const StepOutput& output);
  // Saves the checkpoints that alarms request. RETURNS: the message of the sentinel that ends the run; "" if none does.
  std::string act(const SentinelReport& report, int64_t done);
  // Whether the state after this many steps is already saved, or must not be saved because a sentinel ended the run.
  bool settled_checkpoint(int64_t done) const { return stopped_ || saved_ == done; }

  SentinelMonitor& monitor() { return monitor_; }

 private:
  at::Tensor logits(const Batch& batch);

  Parts parts_;
  SentinelMonitor monitor_;
  int64_t saved_ = -1;
  bool stopped_ = false;
};

}  // namespace ranklab
