// The random bits of one element of a RandomStream (core/base/numbers/philox.h) for code that also runs on a GPU: the
// same ten Philox rounds, and the same mixing of a name and a step; tests check that they are equal. C++17, as required
// by nvcc's flags. Cost: ten rounds per element. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/base/numbers/philox_rounds.h"
#include "core/precision/rounding_grid.h"

namespace ranklab {

// The key of a RandomStream.
struct PhiloxKey {
  uint32_t key[2] = {0, 0};
  uint32_t stream[2] = {0, 0};
};

// RandomStream's key for the stream with this name: hash_bytes() of the name, and the step's RandomStream::step_key().
RANKLAB_EVERYWHERE PhiloxKey key_at_step(PhiloxKey of_seed, uint64_t name, uint64_t step_key) {
  uint64_t x = name ^ step_key;
  x = (x ^ (x >> 30)) * kMixMultiplier1;
  x = (x ^ (x >> 27)) * kMixMultiplier2;
  x ^= x >> 31;
  of_seed.stream[0] = static_cast<uint32_t>(x);
  of_seed.stream[1] = static_cast<uint32_t>(x >> 32);
  return of_seed;
}

RANKLAB_EVERYWHERE uint32_t philox_bits(const PhiloxKey& from, uint64_t element) {
  const uint64_t block = element / 4;
  uint32_t c[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), from.stream[0], from.stream[1]};
  uint32_t k[2] = {from.key[0], from.key[1]};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxMultiplier0} * c[0], p1 = uint64_t{kPhiloxMultiplier2} * c[2];
    const uint32_t c0 = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0];
    const uint32_t c2 = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1];
    c[0] = c0;
    c[1] = static_cast<uint32_t>(p1);
    c[2] = c2;
    c[3] = static_cast<uint32_t>(p0);
    k[0] += kPhiloxKeyStep0;
    k[1] += kPhiloxKeyStep1;
  }
  return c[element % 4];
}

}  // namespace ranklab
