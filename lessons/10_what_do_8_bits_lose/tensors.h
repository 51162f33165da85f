// The numbers that lesson 10 quantizes: normal ones, and the gradients of a training run with a spike. Torch-free.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

namespace ranklab::lesson {

constexpr int64_t kNumbers = int64_t{1} << 20;

std::vector<float> normal_numbers(double deviation, uint64_t seed = 1);

// One tensor per step; its largest magnitude falls slowly, but is 30 times as large in one step.
constexpr int kReplaySteps = 24, kSpike = 12, kHistory = 8;
double replay_deviation(int step);
std::vector<float> replay_numbers(int step);

}  // namespace ranklab::lesson
