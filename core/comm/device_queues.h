// A device that executes operations asynchronously, shared by ranks that are threads of one process: each rank has a
// queue (stream) for kernels and one for transfers between ranks, both in order; no operation waits on the host for
// another. Dependencies are marks (events). Nothing can deadlock: a queue waits only for marks set earlier, and no
// operation blocks until another arrives. The backend with a device supplies an implementation; a test has one on the
// host. Cost: a few microseconds per operation. Thread rule: any thread; queues are the calling thread's.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ranklab {

// A position in a queue, reached when everything enqueued before it is done.
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
  virtual std::string gpu_name() const { return {}; }  // as the driver names it; "": no GPU
  virtual int64_t free_bytes() const = 0;              // of the device's memory, now; 0: unknown

  // Makes the calling thread a rank's thread: what it enqueues from now on goes into its own queues. Once per thread.
  virtual void enter() = 0;
  // Blocks the host until everything that this thread enqueued is done; throws the device's errors.
  virtual void finish() = 0;

  // A mark after everything that this thread has enqueued so far.
  virtual QueueMarkPtr mark() = 0;
  // Operations that this thread enqueues from now on start after the mark.
  virtual void wait(const QueueMark& mark) = 0;
  // Runs `work`, which enqueues copies and sums, in this thread's transfer queue, after all marks in `after`. Returns a
  // mark after it. `work` may run later and on another thread, so it must own what it needs.
  virtual QueueMarkPtr transfer(std::span<const QueueMarkPtr> after, std::function<void()> work) = 0;
  // The tensor's memory is not reused before the transfers that this thread has started are done. Only needed for
  // tensors whose owner does not wait for them.
  virtual void keep(const at::Tensor& tensor) = 0;
};

}  // namespace ranklab
