// Processes of a world wait in rounds, so that deadlines are checked even if nothing arrives.
#pragma once
#include <algorithm>
#include <chrono>

namespace ranklab::cpu_sim {

constexpr std::chrono::milliseconds kTick{100};  // the longest round
// A round longer than this means that this process did not run (a suspended laptop, a debugger), not the others.
constexpr std::chrono::milliseconds kLongRound{500};

inline std::chrono::milliseconds time_left(std::chrono::steady_clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace ranklab::cpu_sim
