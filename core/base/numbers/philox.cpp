#include "core/base/numbers/philox.h"

#include <bit>

#include "core/base/error.h"
#include "core/base/numbers/box_muller.h"
#include "core/base/numbers/philox_rounds.h"

namespace ranklab {
namespace {

uint64_t mix(uint64_t x) {  // splitmix64 finalizer
  x = (x ^ (x >> 30)) * kMixMultiplier1;
  x = (x ^ (x >> 27)) * kMixMultiplier2;
  return x ^ (x >> 31);
}

float to_uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxMultiplier0} * c[0];
    const uint64_t p1 = uint64_t{kPhiloxMultiplier2} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += kPhiloxKeyStep0;
    k[1] += kPhiloxKeyStep1;
  }
  return c;
}

uint64_t RandomStream::seed_key(uint64_t seed) { return mix(seed + 0x9e3779b97f4a7c15ull); }

uint64_t RandomStream::step_key(RandomPurpose purpose, uint64_t step) {
  return mix(static_cast<uint64_t>(purpose) * 0x9e3779b97f4a7c15ull + step);
}

uint64_t RandomStream::name_key(std::string_view global_name) {
  return hash_bytes(global_name.data(), global_name.size());
}

RandomStream::RandomStream(uint64_t seed, RandomPurpose purpose, std::string_view global_name, uint64_t step) {
  const uint64_t key = seed_key(seed);
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  const uint64_t stream = mix(name_key(global_name) ^ step_key(purpose, step));
  stream_ = {static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
}

std::array<uint32_t, 4> RandomStream::block(uint64_t index) const {
  return philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream_[0], stream_[1]}, key_);
}

uint32_t RandomStream::bits(uint64_t element) const { return block(element / 4)[element % 4]; }
float RandomStream::uniform(uint64_t element) const { return to_uniform(bits(element)); }
float RandomStream::normal(uint64_t element) const {
  const auto b = block(element / 4);
  const size_t pair = (element % 4) / 2;
  return box_muller(b[2 * pair], b[2 * pair + 1])[element % 2];
}

void RandomStream::fill_uniform(uint64_t first, std::span<float> out) const {
  for (size_t i = 0; i < out.size();) {
    const auto b = block((first + i) / 4);
    for (size_t word = (first + i) % 4; word < 4 && i < out.size(); ++word, ++i) out[i] = to_uniform(b[word]);
  }
}

uint64_t RandomStream::below(uint64_t element, uint64_t n) const {
  const auto b = block(element);
  return ((static_cast<uint64_t>(b[1]) << 32) | b[0]) % n;
}

RandomPermutation::RandomPermutation(uint64_t size, uint64_t seed, uint64_t epoch) : size_(size) {
  RANKLAB_CHECK(size > 0, ErrorKind::kInvalidArgument, .where = "RandomPermutation", .what = "size must be positive",
                .got = "0");
  half_bits_ = (std::bit_width(size - 1) + 1) / 2;
  if (half_bits_ == 0) half_bits_ = 1;
  const uint64_t key = mix(RandomStream::seed_key(seed) ^ (epoch * 0xd1b54a32d192ed03ull));
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

uint64_t RandomPermutation::operator()(uint64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = index;
  do {  // a Feistel network permutes [0, 4^half_bits); walk its cycle until inside [0, size)
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const auto b = philox4x32({static_cast<uint32_t>(right), static_cast<uint32_t>(right >> 32), round, 0}, key_);
      const uint64_t f = ((static_cast<uint64_t>(b[1]) << 32) | b[0]) & mask;
      const uint64_t next = left ^ f;
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= size_);
  return value;
}

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = seed;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

}  // namespace ranklab
