// Converts times of GPU events to the host's clock. An anchor is an event on an idle stream that the host waits for:
// its time is known on both clocks (to about 20 us), and the GPU measures the distance of other events from it. A new
// anchor every second keeps that distance short, since it is reported as a 32-bit float. Thread rule: its rank's
// thread.
#pragma once
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>

namespace ranklab {

class DeviceClock {
 public:
  struct Anchor {
    Anchor() : event(cudaEventDefault) {}
    at::cuda::CUDAEvent event;
    int64_t wall_ns = 0;

    // REQUIRES: `of` was recorded with timing and has completed.
    int64_t wall_ns_of(const at::cuda::CUDAEvent& of) const;
  };
  using AnchorPtr = std::shared_ptr<const Anchor>;

  explicit DeviceClock(c10::Device device);
  AnchorPtr anchor();  // at most a second old

 private:
  c10::cuda::CUDAStream idle_;
  AnchorPtr last_;
};

}  // namespace ranklab
