#include "core/plan/step_time.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/plan/step_walk.h"
#include "core/plan/traffic.h"
#include "core/sim/link_cost.h"

namespace ranklab {
namespace {

// The slowest group of an axis: one that spans the most nodes.
Group widest_group(const DeviceMesh& mesh, Axis axis, int gpus_per_node) {
  std::vector<Group> groups = mesh.groups(axis);
  return *std::max_element(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return nodes_of(a, gpus_per_node) < nodes_of(b, gpus_per_node);
  });
}

class StepClock final : public StepVisitor {
 public:
  StepClock(const StepShape& shape, const DeviceMesh& mesh, const HardwareProfile& profile, int gpus_per_node)
      : shape_(shape), mesh_(mesh), profile_(profile), gpus_per_node_(gpus_per_node) {}

  void compute(double flops, double bytes, int kernels) override {
    const double work = std::max(flops / profile_.peak_flops(shape_.dtype), bytes / profile_.memory_bandwidth) * 1e9;
    const double lasted = work + profile_.launch_overhead_ns * kernels;
    time_.compute_ns += lasted;
    time_.flops += flops;
    now_ += lasted;
  }

  int post(Axis axis, Verb verb, int64_t logical_bytes) override {
    const auto lasted = static_cast<double>(links(axis).collective(verb, logical_bytes).total_ns);
    double& free_at = free_at_[axis];
    free_at = std::max(now_, free_at) + lasted;
    time_.busy_ns[axis] += lasted;
    ends_.emplace_back(axis, free_at);
    return static_cast<int>(ends_.size()) - 1;
  }

  void wait(int ticket) override {
    const auto [axis, end] = ends_[static_cast<size_t>(ticket)];
    if (end <= now_) return;
    time_.exposed_ns[axis] += end - now_;
    now_ = end;
  }

  StepTime take() {
    time_.total_ns = now_;
    return std::move(time_);
  }

 private:
  const LinkCost& links(Axis axis) {
    const auto found = links_.find(axis);
    if (found != links_.end()) return found->second;
    const Group group = widest_group(mesh_, axis, gpus_per_node_);
    return links_.emplace(axis, LinkCost(profile_, group.global_ranks, gpus_per_node_)).first->second;
  }

  const StepShape& shape_;
  const DeviceMesh& mesh_;
  const HardwareProfile& profile_;
  int gpus_per_node_;
  double now_ = 0;
  std::map<Axis, double> free_at_;
  std::vector<std::pair<Axis, double>> ends_;
  std::map<Axis, LinkCost> links_;
  StepTime time_;
};

}  // namespace

double StepTime::exposed_total_ns() const {
  double sum = 0;
  for (const auto& [axis, exposed] : exposed_ns) sum += exposed;
  return sum;
}

StepTime estimate_step_time(const StepShape& shape, const DeviceMesh& mesh, const HardwareProfile& profile,
                            int gpus_per_node) {
  RANKLAB_CHECK(shape.dims.pp == 1, ErrorKind::kInvalidArgument, .where = "step time estimate",
                .what = "a pipeline's step time depends on its schedule", .got = "pp " + std::to_string(shape.dims.pp),
                .want = "pp 1");
  StepClock clock(shape, mesh, profile, gpus_per_node > 0 ? gpus_per_node : profile.gpus_per_node);
  walk_step(shape, 0, clock);
  return clock.take();
}

}  // namespace ranklab
