#include "backends/cuda/nccl/device_clock.h"

#include "core/trace/tracer.h"

namespace ranklab {
namespace {

constexpr int64_t kOldNs = 1'000'000'000;

}  // namespace

int64_t DeviceClock::Anchor::wall_ns_of(const at::cuda::CUDAEvent& of) const {
  return wall_ns + static_cast<int64_t>(static_cast<double>(event.elapsed_time(of)) * 1e6);
}

DeviceClock::DeviceClock(c10::Device device) : idle_(c10::cuda::getStreamFromPool(false, device.index())) {}

DeviceClock::AnchorPtr DeviceClock::anchor() {
  if (last_ && wall_now_ns() - last_->wall_ns < kOldNs) return last_;
  auto fresh = std::make_shared<Anchor>();
  fresh->event.record(idle_);
  fresh->event.synchronize();
  fresh->wall_ns = wall_now_ns();
  last_ = fresh;
  return last_;
}

}  // namespace ranklab
