#include "core/comm/rank_context.h"

#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/comm/traced_communicator.h"

namespace ranklab {

RankContext::RankContext(Endpoint& endpoint, const DeviceMesh& mesh, const ObserveOptions& options)
    : endpoint_(endpoint),
      mesh_(mesh),
      options_(options),
      tracer_(endpoint.global_rank(), mesh.label(endpoint.global_rank())) {
  RANKLAB_CHECK(
      mesh.world_size() == endpoint.world_size(), ErrorKind::kInvalidArgument, .where = "rank context",
      .what = "the mesh is not made for this world", .got = "a mesh of " + std::to_string(mesh.world_size()) + " ranks",
      .want = std::to_string(endpoint.world_size()) + " ranks", .fix = "make the mesh with world = the world's size");
  tracer_.set_enabled(options.trace);
  if (!options.virtual_time) return;
  RANKLAB_CHECK(options.profile != nullptr, ErrorKind::kInvalidArgument, .where = "rank context",
                .what = "virtual time needs a hardware profile", .got = "none", .want = "ObserveOptions::profile",
                .fix = "pass load_hardware_profile(\"h100-sxm\"), or set virtual_time = false");
  op_observer_ = std::make_unique<OpObserver>(*options.profile, clock_);
}

RankContext::~RankContext() = default;

int RankContext::gpus_per_node() const {
  if (options_.gpus_per_node > 0) return options_.gpus_per_node;
  return options_.profile != nullptr ? options_.profile->gpus_per_node : world_size();
}

RankTime RankContext::time() const {
  return {.end_ns = clock_.now_ns(),
          .compute_ns = clock_.compute_ns(),
          .exposed_ns = clock_.exposed_ns(),
          .waited_ns = clock_.peer_wait_ns(),
          .flops = op_observer_->flops(),
          .kernel_times = op_observer_->kernel_times()};
}

Communicator& RankContext::comm(Axis axis) {
  CommunicatorPtr& slot = comms_[static_cast<size_t>(axis)];
  if (slot) return *slot;
  const Group group = mesh_.group(axis, global_rank());
  std::unique_ptr<LinkCost> cost;
  if (options_.virtual_time)
    cost = std::make_unique<LinkCost>(*options_.profile, group.global_ranks, gpus_per_node(), axis);
  slot = make_traced_communicator(endpoint_.communicator(group), options_.virtual_time ? &clock_ : nullptr,
                                  options_.trace ? &tracer_ : nullptr, std::move(cost));
  return *slot;
}

}  // namespace ranklab
