#include "lessons/10_what_do_8_bits_lose/tensors.h"

#include <cmath>

#include "core/base/numbers/philox.h"

namespace ranklab::lesson {

std::vector<float> normal_numbers(double deviation, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(kNumbers));
  RandomStream(seed, RandomPurpose::kTest, "lesson 10").fill_normal(0, numbers);
  for (float& number : numbers) number = static_cast<float>(static_cast<double>(number) * deviation);
  return numbers;
}

double replay_deviation(int step) {
  constexpr double kFirst = 2e-3, kFall = 0.97, kSpikeTimes = 30;
  return kFirst * std::pow(kFall, step) * (step == kSpike ? kSpikeTimes : 1.0);
}

std::vector<float> replay_numbers(int step) {
  constexpr size_t kShort = 1 << 12;
  std::vector<float> numbers = normal_numbers(replay_deviation(step), 100 + static_cast<uint64_t>(step));
  numbers.resize(kShort);
  return numbers;
}

}  // namespace ranklab::lesson
