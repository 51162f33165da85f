// The numbers that lesson 10 rounds: normal ones, and the gradients of a training that has a spike. Torch-free. Thread
// rule: pure.
#pragma once
#include <cstdint>
#include <vector>

namespace ranklab::lesson {

constexpr int64_t kNumbers = int64_t{1} << 20;

std::vector<float> normal_numbers(double deviation, uint64_t seed = 1);

// Step by step: of a tensor whose largest magnitude falls slowly and is 30 times as large in one step.
constexpr int kReplaySteps = 24, kSpike = 12, kHistory = 8;
double replay_deviation(int step);
std::vector<float> replay_numbers(int step);

}  // namespace ranklab::lesson
