// A device that works off its orders by itself, as ranks that are threads of one process share it: each rank has a
// queue for its kernels and one for transfers between ranks, both in order, and no order waits on the host for another
// one. What must come first is said with marks. Nothing here can deadlock: a queue waits only for marks that were set
// before, and no order runs until another arrives. The backend that has a device hands in an implementation; a test has
// one on the host. Cost: a few microseconds an order. Thread rule: any thread; queues are the calling thread's.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ranklab {

// A place in a queue, reached when everything ordered before it is done.
class QueueMark {
 public:
  virtual ~QueueMark() = default;
};
using QueueMarkPtr = std::shared_ptr<QueueMark>;

class DeviceQueues {
 public:
  virtual ~DeviceQueues() = default;

  virtual c10::Device device() const = 0;
  virtual std::string describe() const = 0;            // "cuda:0, NVIDIA H100 80GB HBM3"
  virtual std::string gpu_name() const { return {}; }  // as the driver has it; "": no GPU
  virtual int64_t free_bytes() const = 0;              // of the device's memory, now; 0: unknown

  // Makes the calling thread a rank's: what it orders from now on goes into queues of its own. Once a thread.
  virtual void enter() = 0;
  // Waits on the host for all that this thread ordered; throws what went wrong on the device.
  virtual void finish() = 0;

  // Behind all that this thread has ordered so far.
  virtual QueueMarkPtr mark() = 0;
  // What this thread orders from now on starts behind the mark.
  virtual void wait(const QueueMark& mark) = 0;
  // Runs `work`, which orders copies and sums, in this thread's queue of transfers, behind all of `after`. Returns the
  // mark behind it. `work` may run later and on another thread: it owns what it needs.
  virtual QueueMarkPtr transfer(std::span<const QueueMarkPtr> after, std::function<void()> work) = 0;
  // The tensor's memory is not given to anyone before this thread's transfers so far are done. Only for tensors whose
  // owner does not wait for them.
  virtual void keep(const at::Tensor& tensor) = 0;
};

}  // namespace ranklab
