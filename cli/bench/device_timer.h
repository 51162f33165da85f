// Times work that is queued without pauses, on the device's own clock. Thread rule: one thread.
#pragma once
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <functional>

namespace ranklab {

class DeviceTimer {
 public:
  DeviceTimer(at::Device device, int iterations) : device_(device), iterations_(iterations) {}

  double milliseconds(const std::function<void()>& work) const {
    for (int i = 0; i < 3; ++i) work();
    if (device_.is_cpu()) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < iterations_; ++i) work();
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / iterations_;
    }
    const c10::impl::VirtualGuardImpl guard(device_.type());
    const c10::Stream stream = guard.getStream(guard.getDevice());
    c10::Event begin(device_.type(), c10::EventFlag::BACKEND_DEFAULT),
        end(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    begin.record(stream);
    for (int i = 0; i < iterations_; ++i) work();
    end.record(stream);
    end.synchronize();
    return begin.elapsedTime(end) / iterations_;
  }

 private:
  at::Device device_;
  int iterations_;
};

}  // namespace ranklab
