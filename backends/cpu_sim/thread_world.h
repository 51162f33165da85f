// A world of N ranks that are N threads of this process: real tensors, real collectives, every bug in one debugger.
// Each rank thread runs ATen on one core, or on a device that all share, and tags its log lines with its rank.
//
// The world sees every call of every rank before a byte moves (watch.h), so it never hangs: a mismatch, a deadlock, a
// rank that left or threw, and a rank that blocks the others are each reported with the ranks, group, call number, op
// and call site, all other ranks stop waiting, and run() rethrows the first error. Cost: one thread per rank; posting
// and matching a call costs about a microsecond. Thread rule: run() belongs to one thread at a time; different worlds
// are independent.
#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "core/base/error.h"
#include "core/comm/world.h"
#include "core/live/stepper.h"

namespace ranklab {

class DeviceQueues;  // core/comm/device_queues.h

// How the bytes of a matched call move. kDirect: members read each other's tensors in place. kGloo: Gloo's algorithms,
// over our in-process transport or over TCP on the loopback interface. The results are bit-identical.
enum class Collectives { kDirect, kGloo };
enum class Transport { kInproc, kTcp };

struct ThreadWorldOptions {
  int size = 1;
  Collectives collectives = Collectives::kDirect;
  Transport transport = Transport::kInproc;  // for kGloo
  // Null: tensors are in host memory. Otherwise all ranks share this device: their kernels run there, each rank's in
  // its own queue (stream), and calls move bytes there. REQUIRES kDirect.
  std::shared_ptr<DeviceQueues> device = {};
  // A rank that others wait for and that has made no call for this long is reported as hung. 0: never.
  std::chrono::milliseconds hang_timeout{60'000};
  // After an error, how long ranks may take to return before on_stuck is called.
  std::chrono::milliseconds grace{2'000};
  // Called if a rank does not return, since a thread cannot be killed. Empty: prints the error and exits the process
  // with its exit code (6 for a hang).
  std::function<void(const Error&)> on_stuck = {};
  // Members must make a call from the same source line: catches two swapped calls that look alike. Off by default,
  // since a correct program may call from two branches.
  bool same_call_site = false;
  // Notified of who sleeps for whom and when a run begins and ends; a rank that it holds is neither hung nor
  // deadlocked. Its size must be the world's.
  std::shared_ptr<Stepper> stepper = {};
};

// Throws kInvalidArgument for a size below 1 or above 512.
std::unique_ptr<World> make_thread_world(const ThreadWorldOptions& options);

}  // namespace ranklab
