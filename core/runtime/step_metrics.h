// Reduces every rank's values to the global metrics on which all ranks agree, in one exchange per step.
#pragma once
#include "core/comm/communicator.h"
#include "core/comm/world.h"
#include "core/runtime/components.h"
#include "core/runtime/hooks.h"

namespace ranklab {

// The sum over all GPUs of the world, in the run's compute dtype; 0 on CPUs, and on GPUs without a profile.
double wall_peak_flops(const World& world, const RunPlan& plan);

class MetricReducer {
 public:
  // `world` must be untraced, because bookkeeping costs no virtual time. `peak_flops`: wall_peak_flops(), for MFU in
  // wall time.
  MetricReducer(Communicator& world, RankContext& ctx, const RunPlan& plan, double peak_flops);

  // What a rank requests from all ranks.
  struct Asks {
    bool stop = false;    // counts only on global rank 0
    bool traces = false;  // collect the recorded traces; counts if any rank requests it
  };
  struct Outcome {
    StepMetrics metrics;
    bool stop = false;
    bool traces = false;
  };
  // Collective. Throws kNumeric naming the step when the loss is not finite, or the gradient norm of a step that is not
  // skipped is not finite.
  Outcome reduce(int64_t step, const StepOutput& output, double grad_norm, double lr, Asks asks);
  // Collective: mean loss over every rank's tokens.
  double mean_loss(const StepOutput& output);
  // Collective. Call when forwards between steps have ended on all ranks, so that their time is not counted in any
  // step.
  void settle();

 private:
  struct Sums;
  Sums gather(const StepOutput& output, Asks asks);
  void settle(const Sums& sums);
  Communicator& world_;
  RankContext& ctx_;
  const RunPlan& plan_;
  double flops_per_token_, wall_peak_flops_;
  int64_t last_virtual_ns_ = 0;
  double last_exposed_ns_ = 0;
  double last_peer_wait_ns_ = 0;
  int64_t last_wall_ns_ = 0;
};

}  // namespace ranklab
