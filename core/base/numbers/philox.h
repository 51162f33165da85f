// Layout-independent randomness: a counter-based generator (Philox4x32-10, Salmon et al., "Parallel Random Numbers: As
// Easy as 1, 2, 3", SC11) keyed by (seed, purpose, global tensor name, step) and indexed by the global element. A shard
// draws exactly the numbers that the whole tensor would hold at its offset, so every parallel layout starts from the
// same weights and drops the same activations. Cost: one 10-round block per four elements. Thread rule: immutable,
// share freely.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ranklab {

enum class RandomPurpose : uint32_t {
  kInit = 1,
  kDropout = 2,
  kStochasticRounding = 3,
  kData = 4,
  kSample = 5,
  kTest = 6
};

// The raw block function: 10 Philox rounds. Matches the Random123 known-answer vectors (tests/base/philox_test.cpp).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class RandomStream {
 public:
  RandomStream(uint64_t seed, RandomPurpose purpose, std::string_view global_name, uint64_t step = 0);

  // The contributions of the seed, the step and the name to a stream's key, for code that draws its numbers elsewhere
  // (core/nn/device_random.h, core/precision/device_rounding.h).
  static uint64_t seed_key(uint64_t seed);
  static uint64_t step_key(RandomPurpose purpose, uint64_t step);
  static uint64_t name_key(std::string_view global_name);

  uint32_t bits(uint64_t element) const;
  // Uniform in [0, 1), 24 bits.
  float uniform(uint64_t element) const;
  // Standard normal by Box-Muller; element i uses word i of the stream's normal sequence.
  float normal(uint64_t element) const;
  // Fills out[i] with the number of element first + i.
  void fill_bits(uint64_t first, std::span<uint32_t> out) const;
  void fill_uniform(uint64_t first, std::span<float> out) const;
  void fill_normal(uint64_t first, std::span<float> out) const;
  // Unbiased enough for data order: 64 random bits modulo n. REQUIRES: n > 0.
  uint64_t below(uint64_t element, uint64_t n) const;
  // For generating the same numbers on a device (core/precision/philox_lane.h).
  const std::array<uint32_t, 2>& key() const { return key_; }
  const std::array<uint32_t, 2>& stream() const { return stream_; }

 private:
  std::array<uint32_t, 4> block(uint64_t index) const;
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> stream_;
};

// A bijection of [0, size) keyed by `seed` (a 4-round Feistel network with cycle walking): the shuffled order of an
// epoch without a stored permutation, so that a data position is one integer.
class RandomPermutation {
 public:
  RandomPermutation(uint64_t size, uint64_t seed, uint64_t epoch);
  uint64_t operator()(uint64_t index) const;  // REQUIRES: index < size

 private:
  uint64_t size_;
  int half_bits_;
  std::array<uint32_t, 2> key_;
};

// FNV-1a, 64 bits: maps names to keys, tensors to fingerprints.
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0xcbf29ce484222325ull);

}  // namespace ranklab
