// The constants of Philox4x32-10's rounds (Random123) and of splitmix64's finalizer, shared by all implementations in
// this project: one block, sixteen blocks at a time, one element on a GPU, and tensors. Restricted to C++17 because of
// nvcc's flags. Thread rule: constants.
#pragma once
#include <cstdint>

namespace ranklab {

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53, kPhiloxMultiplier2 = 0xCD9E8D57;  // for words 0 and 2
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9, kPhiloxKeyStep1 = 0xBB67AE85;        // added after each round
inline constexpr uint64_t kMixMultiplier1 = 0xbf58476d1ce4e5b9, kMixMultiplier2 = 0x94d049bb133111eb;

}  // namespace ranklab
