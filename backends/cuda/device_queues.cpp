#include "backends/cuda/device_queues.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using c10::cuda::CUDACachingAllocator::TraceEntry;

void accept(cudaError_t code, const char* step) {
  RANKLAB_CHECK(code == cudaSuccess, ErrorKind::kCommunication, .where = "device queues",
                .what = std::string("the GPU failed at ") + step, .got = cudaGetErrorString(code), .want = "no error",
                .fix = "an error of a kernel shows up late: run again with CUDA_LAUNCH_BLOCKING=1 to see where");
}

// A pool of reusable events without timing: an event that queues were told to wait for may be recorded again.
class Events {
 public:
  cudaEvent_t take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        const cudaEvent_t event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    accept(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
    return event;
  }
  void give(cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

// Never destroyed, because the driver may be unloaded first.
Events& events() {
  static auto* const all = new Events;
  return *all;
}

class EventMark final : public QueueMark {
 public:
  explicit EventMark(cudaStream_t stream) : event_(events().take()) {
    accept(cudaEventRecord(event_, stream), "setting a mark");
  }
  ~EventMark() override { events().give(event_); }
  EventMark(const EventMark&) = delete;
  EventMark& operator=(const EventMark&) = delete;
  void put_in_front_of(cudaStream_t stream) const {
    accept(cudaStreamWaitEvent(stream, event_, 0), "waiting for a mark");
  }

 private:
  cudaEvent_t event_;
};

// A rank's streams. They are reused by the ranks of the next run; otherwise what LibTorch keeps per stream (free
// memory, cuBLAS workspaces) would grow with every run.
struct RankStreams {
  c10::cuda::CUDAStream kernels, transfers;
};

class FreeStreams {
 public:
  RankStreams take(c10::DeviceIndex device) {
    const std::lock_guard lock(mutex_);
    std::vector<RankStreams>& free = free_[device];
    // Others wait for transfers, so transfer kernels get high priority.
    if (free.empty())
      return {c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device),
              c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device)};
    const RankStreams streams = free.back();
    free.pop_back();
    return streams;
  }
  void give(c10::DeviceIndex device, const RankStreams& streams) {
    const std::lock_guard lock(mutex_);
    free_[device].push_back(streams);
  }

 private:
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<RankStreams>> free_;
};

FreeStreams& free_streams() {
  static auto* const all = new FreeStreams;
  return *all;
}

class StreamQueues final : public DeviceQueues {
 public:
  explicit StreamQueues(c10::DeviceIndex index) : index_(index) {}

  c10::Device device() const override { return {c10::DeviceType::CUDA, index_}; }
  std::string gpu_name() const override {
    cudaDeviceProp properties{};
    accept(cudaGetDeviceProperties(&properties, index_), "asking its name");
    return properties.name;
  }
  std::string describe() const override {
    return strprintf("cuda:%d, %s", static_cast<int>(index_), gpu_name().c_str());
  }
  int64_t free_bytes() const override {
    const c10::cuda::CUDAGuard here(index_);
    size_t free = 0, total = 0;
    accept(cudaMemGetInfo(&free, &total), "asking its free memory");
    return static_cast<int64_t>(free);
  }

  void enter() override {
    c10::cuda::set_device(index_);
    t_streams = free_streams().take(index_);
    c10::cuda::setCurrentCUDAStream(t_streams->kernels);
  }
  void finish() override {
    accept(cudaStreamSynchronize(t_streams->transfers.stream()), "finishing transfers");
    accept(cudaStreamSynchronize(t_streams->kernels.stream()), "finishing kernels");
    free_streams().give(index_, *t_streams);
  }

  QueueMarkPtr mark() override { return std::make_shared<EventMark>(current()); }
  void wait(const QueueMark& mark) override { static_cast<const EventMark&>(mark).put_in_front_of(current()); }
  QueueMarkPtr transfer(std::span<const QueueMarkPtr> after, std::function<void()> work) override {
    const c10::cuda::CUDAStreamGuard here(t_streams->transfers);
    for (const QueueMarkPtr& mark : after) static_cast<const EventMark&>(*mark).put_in_front_of(current());
    work();
    return std::make_shared<EventMark>(current());
  }
  void keep(const at::Tensor& tensor) override {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), t_streams->transfers);
  }

 private:
  cudaStream_t current() const { return c10::cuda::getCurrentCUDAStream(index_).stream(); }

  static thread_local std::optional<RankStreams> t_streams;
  c10::DeviceIndex index_;
};

thread_local std::optional<RankStreams> StreamQueues::t_streams;

}  // namespace

std::unique_ptr<DeviceQueues> make_stream_queues() {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  return std::make_unique<StreamQueues>(c10::cuda::current_device());
}

void watch_gpu_memory(void (*taken)(const void* block, int64_t bytes), void (*given)(const void* block)) {
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);  // initializes the allocators of all devices
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker([taken, given](const TraceEntry& entry) {
    const auto* block = reinterpret_cast<const void*>(entry.addr_);
    if (entry.action_ == TraceEntry::ALLOC) taken(block, static_cast<int64_t>(entry.size_));
    if (entry.action_ == TraceEntry::FREE_REQUESTED) given(block);
  });
}

}  // namespace ranklab
