// The clock of one rank while a step is walked: kernels advance it by the roofline, collectives run on a stream per
// axis by the alpha-beta model, a wait moves it to the end of what it waits for. Peers are as fast. Nanoseconds. Thread
// rule: one thread.
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "core/comm/device_mesh.h"
#include "core/plan/step_time.h"
#include "core/plan/step_walk.h"
#include "core/sim/link_cost.h"

namespace ranklab {

class StepClock : public StepVisitor {
 public:
  // The references outlive this.
  StepClock(const StepShape& shape, const DeviceMesh& mesh, const HardwareProfile& profile, int gpus_per_node)
      : shape_(shape), mesh_(mesh), profile_(profile), gpus_per_node_(gpus_per_node) {}

  void compute(double flops, double bytes, int kernels) override;
  void compute_fp8(double flops, double bytes) override;
  int post(Axis axis, Verb verb, int64_t logical_bytes) override;
  int exchange(Axis axis, const PlannedExchange& bytes) override;
  void wait(int ticket) override;
  void send(int pp_rank, int64_t bytes, bool awaited) override;
  void set_recomputing(bool again) override { recomputing_ = again; }

  double now() const { return now_; }
  // The rank stands still until then.
  void advance_to(double when) { now_ = when > now_ ? when : now_; }
  double message_ns(int64_t bytes) {
    return static_cast<double>(links(Axis::kPp).collective(Verb::kSend, bytes).total_ns);
  }
  StepTime take();

 private:
  void charge(DType type, double flops, double bytes, int kernels);
  const LinkCost& links(Axis axis);
  int begin(Axis axis, double duration_ns);

  const StepShape& shape_;
  const DeviceMesh& mesh_;
  const HardwareProfile& profile_;
  int gpus_per_node_;
  double now_ = 0;
  bool recomputing_ = false;
  std::map<Axis, double> free_at_;
  std::vector<std::pair<Axis, double>> ends_;
  std::map<Axis, LinkCost> links_;
  StepTime time_;
};

}  // namespace ranklab
