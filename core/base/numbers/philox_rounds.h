// The numbers of Philox4x32-10's rounds (Random123) and of splitmix64's finalizer, for each of the forms in which the
// project has them: one block, eight at a time, an element on a GPU, tensors. C++17, as required by nvcc's flags.
// Thread rule: constants.
#pragma once
#include <cstdint>

namespace ranklab {

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53, kPhiloxMultiplier2 = 0xCD9E8D57;  // of words 0 and 2
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9, kPhiloxKeyStep1 = 0xBB67AE85;        // after each round
inline constexpr uint64_t kMixMultiplier1 = 0xbf58476d1ce4e5b9, kMixMultiplier2 = 0x94d049bb133111eb;

}  // namespace ranklab
