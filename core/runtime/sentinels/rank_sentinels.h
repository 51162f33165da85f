// The sentinels of one rank of a run: made of the run's parts, asked at the end of each step, and what those that fire
// ask for. Thread rule: its rank's thread; making, end_step() and act() are collective.
#pragma once
#include <functional>
#include <memory>

#include "core/runtime/components.h"
#include "core/runtime/sentinels/monitor.h"

namespace ranklab {

// False: they are off, or tensors have no numbers (core/plan).
bool has_sentinels(const RunPlan& plan, const RankData& data);

class RankSentinels {
 public:
  // REQUIRES: has_sentinels().
  struct Parts {
    StepContext& step;  // outlives this
    ScheduleStrategy& schedule;
    Communicator& world;                      // untraced
    std::function<void()> settle;             // all ranks have waited for each other, outside of steps
    std::function<int64_t()> wall_ns;         // for the sentinels of wall time
    std::vector<BatchWatch*>& batch_watches;  // whom the run's data shows its batches
    CheckpointManager& checkpoints;
    const MakeOwnFamily& parity_watch;
  };
  explicit RankSentinels(Parts parts);

  void begin_step(int64_t step) { monitor_.begin_step(step); }
  // Measures; the alarms are also instants on rank 0's timeline.
  std::shared_ptr<const SentinelReport> end_step(const StepMetrics& metrics, const StepOutput& output);
  // Takes the checkpoints that alarms ask for. RETURNS: what the sentinel that ends the run says; "": none does.
  std::string act(const SentinelReport& report, int64_t done);
  // Whether the state after so many steps is saved, or must not be: a sentinel ended the run.
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
