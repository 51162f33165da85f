#include "core/plan/step_clock.h"

#include <algorithm>

#include "core/plan/traffic.h"

namespace ranklab {
namespace {

// The slowest group of an axis: one that spans the most nodes.
Group widest_group(const DeviceMesh& mesh, Axis axis, int gpus_per_node) {
  std::vector<Group> groups = mesh.groups(axis);
  return *std::max_element(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return nodes_of(a, gpus_per_node) < nodes_of(b, gpus_per_node);
  });
}

}  // namespace

void StepClock::compute(double flops, double bytes, int kernels) { charge(shape_.dtype, flops, bytes, kernels); }
void StepClock::compute_fp8(double flops, double bytes) { charge(DType::kFloat8, flops, bytes, 1); }

void StepClock::charge(DType type, double flops, double bytes, int kernels) {
  const double work = std::max(flops / profile_.peak_flops(type), bytes / profile_.memory_bandwidth) * 1e9;
  const double lasted = work + profile_.launch_overhead_ns * kernels;
  time_.compute_ns += lasted;
  if (!recomputing_) time_.flops += flops;
  now_ += lasted;
}

int StepClock::post(Axis axis, Verb verb, int64_t logical_bytes) {
  return begin(axis, static_cast<double>(links(axis).collective(verb, logical_bytes).total_ns));
}

int StepClock::exchange(Axis axis, const PlannedExchange& bytes) {
  const LinkCost& cost = links(axis);
  if (bytes.puts > 0) return begin(axis, static_cast<double>(cost.puts(bytes.in_node, bytes.across).total_ns));
  const int64_t charged = cost.exchange_bytes(bytes.in_node, bytes.across);
  return begin(axis, static_cast<double>(cost.collective(Verb::kAllToAll, charged).total_ns));
}

int StepClock::begin(Axis axis, double lasted) {
  double& free_at = free_at_[axis];
  free_at = std::max(now_, free_at) + lasted;
  time_.busy_ns[axis] += lasted;
  ends_.emplace_back(axis, free_at);
  return static_cast<int>(ends_.size()) - 1;
}

void StepClock::wait(int ticket) {
  const auto [axis, end] = ends_[static_cast<size_t>(ticket)];
  if (end <= now_) return;
  time_.exposed_ns[axis] += end - now_;
  now_ = end;
}

void StepClock::send(int, int64_t bytes, bool awaited) {
  const int ticket = post(Axis::kPp, Verb::kSend, bytes);
  if (awaited) wait(ticket);
}

StepTime StepClock::take() {
  time_.total_ns = now_;
  return std::move(time_);
}

const LinkCost& StepClock::links(Axis axis) {
  const auto found = links_.find(axis);
  if (found != links_.end()) return found->second;
  const Group group = widest_group(mesh_, axis, gpus_per_node_);
  return links_.emplace(axis, LinkCost(profile_, group.global_ranks, gpus_per_node_)).first->second;
}

}  // namespace ranklab
