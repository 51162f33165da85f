// Where ranks live. A backend makes a World; programs hand it a body that every rank runs. core never names a backend.
#pragma once
#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <vector>

#include "core/comm/capability.h"
#include "core/comm/communicator.h"

namespace ranklab {

class GraphRecorder;  // graph_recorder.h

// One rank's access to its world.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  virtual int global_rank() const = 0;
  virtual int world_size() const = 0;
  virtual c10::Device device() const = 0;
  // Device of the few values that hosts compute with and exchange (loss, tokens, times).
  virtual c10::Device control_device() const { return device(); }
  // The communicator of a group this rank is a member of; every member requests its groups in the same order.
  virtual CommunicatorPtr communicator(const Group& group) = 0;
  // Records work of this rank's stream, if the world has Capability::kRecordedPasses; else null.
  virtual std::shared_ptr<GraphRecorder> graph_recorder() { return nullptr; }
};

class World {
 public:
  virtual ~World() = default;
  virtual int size() const = 0;
  // The number of ranks in this process: all of them, or one if each rank is a process. The process of rank 0 is the
  // one that prints and writes files.
  virtual int local_ranks() const { return size(); }
  virtual bool has_rank_zero() const { return true; }
  // Whether another process prints the error that run() threw.
  virtual bool error_is_shown_elsewhere() const { return false; }
  // The accelerator of this world, as named by the driver ("NVIDIA H100 80GB HBM3"), and the number of accelerators; ""
  // and 0 on CPUs.
  virtual std::string gpu_name() const { return {}; }
  virtual int gpus() const { return 0; }
  virtual Capabilities capabilities() const = 0;
  bool can(Capability capability) const { return capabilities().has(capability); }
  virtual std::string describe() const = 0;  // for the banner: "8 rank threads, Gloo in process, direct reductions"
  // Runs `body` on every rank of this process and joins them. If a rank throws, the world is poisoned: peers stop
  // waiting, every rank is joined, and the first error is rethrown with its rank named.
  virtual void run(const std::function<void(Endpoint&)>& body) = 0;
  // For a failed run whose ranks are processes. leave_behind() sends bytes of this rank to rank 0, on the rank's
  // thread, as far as that is still possible. left_behind() returns, in rank 0's process after run() has thrown, what
  // came from the others, after waiting a moment for those that still exist. The data may come from a broken program.
  virtual void leave_behind(const std::string& /*bytes*/) noexcept {}
  virtual std::vector<std::string> left_behind() { return {}; }
  // Call when this process exits in the middle of run(): tells the other ranks why, so that they do not wait. Any
  // thread.
  virtual void give_up(const std::string& /*why*/) noexcept {}
};

}  // namespace ranklab
