// Bulk random numbers: the ten rounds of sixteen Philox blocks in parallel where the machine has AVX2, and normals
// computed from a batch of words at a time.
#include <algorithm>

#include "core/base/numbers/box_muller.h"
#include "core/base/numbers/philox.h"
#include "core/base/numbers/philox_rounds.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ranklab {
namespace {

constexpr size_t kBlocks = 16, kWords = 4 * kBlocks;
constexpr uint64_t kLastBlock = (uint64_t{1} << 62) - 1;  // elements are numbered modulo 2^64, four per block

using Key = std::array<uint32_t, 2>;

// Writes the words of blocks first to first + 15 of a stream to out.
using Fill = void(uint64_t first, Key stream, Key key, uint32_t* out);

void fill_plain(uint64_t first, Key stream, Key key, uint32_t* out) {
  for (size_t i = 0; i < kBlocks; ++i) {
    const uint64_t index = (first + i) & kLastBlock;
    const auto block =
        philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream[0], stream[1]}, key);
    std::copy(block.begin(), block.end(), out + 4 * i);
  }
}

#ifdef __x86_64__
#define RANKLAB_AVX2 __attribute__((target("avx2")))

struct Product {
  __m256i low, high;
};

// 64-bit products of all eight lanes: the even and the odd lanes are multiplied separately, then merged.
RANKLAB_AVX2 inline Product multiply(__m256i x, uint32_t factor) {
  const __m256i by = _mm256_set1_epi64x(factor);
  const __m256i even = _mm256_mul_epu32(x, by), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), by);
  return {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa),
          _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa)};
}

RANKLAB_AVX2 inline __m256i load(const uint32_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}

// One register per word, eight blocks in parallel.
struct Blocks {
  __m256i c0, c1, c2, c3;
};

RANKLAB_AVX2 inline Blocks counters(uint64_t first, Key stream) {
  alignas(32) uint32_t low[8], high[8];
  for (size_t i = 0; i < 8; ++i) {
    const uint64_t index = (first + i) & kLastBlock;
    low[i] = static_cast<uint32_t>(index);
    high[i] = static_cast<uint32_t>(index >> 32);
  }
  return {load(low), load(high), _mm256_set1_epi32(static_cast<int>(stream[0])),
          _mm256_set1_epi32(static_cast<int>(stream[1]))};
}

RANKLAB_AVX2 inline void one_round(Blocks& b, __m256i key0, __m256i key1) {
  const Product p0 = multiply(b.c0, kPhiloxMultiplier0), p1 = multiply(b.c2, kPhiloxMultiplier2);
  b = {_mm256_xor_si256(_mm256_xor_si256(p1.high, b.c1), key0), p1.low,
       _mm256_xor_si256(_mm256_xor_si256(p0.high, b.c3), key1), p0.low};
}

// Stores the four words of each block contiguously.
RANKLAB_AVX2 inline void store(const Blocks& x, uint32_t* out) {
  const __m256i a = _mm256_unpacklo_epi32(x.c0, x.c1), b = _mm256_unpacklo_epi32(x.c2, x.c3);
  const __m256i c = _mm256_unpackhi_epi32(x.c0, x.c1), d = _mm256_unpackhi_epi32(x.c2, x.c3);
  const __m256i r0 = _mm256_unpacklo_epi64(a, b), r1 = _mm256_unpackhi_epi64(a, b);  // blocks 0 and 4, 1 and 5
  const __m256i r2 = _mm256_unpacklo_epi64(c, d), r3 = _mm256_unpackhi_epi64(c, d);  // blocks 2 and 6, 3 and 7
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(r0, r1, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(r2, r3, 0x20));
  _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(r0, r1, 0x31));
  _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(r2, r3, 0x31));
}

// Two groups of eight blocks at a time: the multiplications of one hide the latency of the other's.
RANKLAB_AVX2 void fill_avx2(uint64_t first, Key stream, Key key, uint32_t* out) {
  Blocks a = counters(first, stream), b = counters(first + 8, stream);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const __m256i key0 = _mm256_set1_epi32(static_cast<int>(key[0])),
                  key1 = _mm256_set1_epi32(static_cast<int>(key[1]));
    one_round(a, key0, key1);
    one_round(b, key0, key1);
    key[0] += kPhiloxKeyStep0;
    key[1] += kPhiloxKeyStep1;
  }
  store(a, out);
  store(b, out + kWords / 2);
}

Fill* choose_fill() { return __builtin_cpu_supports("avx2") ? fill_avx2 : fill_plain; }
#else
Fill* choose_fill() { return fill_plain; }
#endif

}  // namespace

void RandomStream::fill_bits(uint64_t first, std::span<uint32_t> out) const {
  static Fill* const fill = choose_fill();
  for (size_t done = 0; done < out.size();) {
    const uint64_t block = (first + done) / 4;
    const size_t skip = (first + done) % 4;
    if (skip == 0 && out.size() - done >= kWords) {
      fill(block, stream_, key_, out.data() + done);
      done += kWords;
      continue;
    }
    uint32_t words[kWords];
    fill(block, stream_, key_, words);
    const size_t count = std::min(kWords - skip, out.size() - done);
    std::copy_n(words + skip, count, out.data() + done);
    done += count;
  }
}

static_assert(kNormalsAtOnce == kWords, "words that fill_bits() draws at once");
void RandomStream::fill_normal(uint64_t first, std::span<float> out) const {
  uint32_t words[kNormalsAtOnce];
  float normals[kNormalsAtOnce];
  for (size_t done = 0; done < out.size();) {
    const size_t skip = (first + done) % 4;  // both words of a pair are needed
    const size_t count = std::min(kNormalsAtOnce - skip, out.size() - done);
    fill_bits(first + done - skip, words);
    box_muller_pairs(words, normals);
    std::copy_n(normals + skip, count, out.data() + done);
    done += count;
  }
}

}  // namespace ranklab
