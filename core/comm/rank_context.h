// Everything that a rank's code needs to know about its position: its coordinates, a traced communicator per axis, its
// virtual clock and its recorder. Built on the rank's thread at the start of World::run's body. Thread rule: its rank's
// thread only.
#pragma once
#include <array>
#include <memory>

#include "core/comm/device_mesh.h"
#include "core/comm/rank_time.h"
#include "core/comm/world.h"
#include "core/sim/hardware_profile.h"
#include "core/sim/op_observer.h"
#include "core/sim/virtual_clock.h"
#include "core/trace/tracer.h"

namespace ranklab {

struct ObserveOptions {
  bool virtual_time = true;  // false on real hardware
  bool trace = true;
  const HardwareProfile* profile = nullptr;  // REQUIRED with virtual_time; must outlive the context
  int gpus_per_node = 0;                     // 0: the profile's value
};

class RankContext {
 public:
  RankContext(Endpoint& endpoint, const DeviceMesh& mesh, const ObserveOptions& options);
  ~RankContext();

  int global_rank() const { return endpoint_.global_rank(); }
  int world_size() const { return endpoint_.world_size(); }
  c10::Device device() const { return endpoint_.device(); }
  c10::Device control_device() const { return endpoint_.control_device(); }
  const DeviceMesh& mesh() const { return mesh_; }
  int gpus_per_node() const;
  int size(Axis axis) const { return mesh_.size(axis); }
  Axis replica_axis() const { return mesh_.replica_axis(); }
  int coordinate(Axis axis) const { return mesh_.coordinate(axis, global_rank()); }

  // The traced communicator of this rank's group on `axis`, created on first use.
  Communicator& comm(Axis axis);
  std::shared_ptr<GraphRecorder> graph_recorder() { return endpoint_.graph_recorder(); }
  VirtualClock& clock() { return clock_; }
  Tracer& tracer() { return tracer_; }
  OpObserver* op_observer() { return op_observer_.get(); }  // null without virtual time
  RankTime time() const;                                    // from the start until now. REQUIRES: virtual time

 private:
  Endpoint& endpoint_;
  const DeviceMesh& mesh_;
  ObserveOptions options_;
  VirtualClock clock_;
  Tracer tracer_;
  std::unique_ptr<OpObserver> op_observer_;
  std::array<CommunicatorPtr, static_cast<size_t>(Axis::kCount)> comms_;
};

}  // namespace ranklab
