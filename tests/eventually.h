// Waits for what another thread or process does. Nothing depends on how long it takes.
#pragma once
#include <chrono>
#include <functional>
#include <thread>

namespace ranklab {

// Until it holds, for at least two minutes; whether it did.
inline bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 24'000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace ranklab
