// Pairs of standard normals by the Box-Muller transform (Annals of Mathematical Statistics 29, 1958): for two words a
// and b, sqrt(-2 log((a + 1) / 2^32)) times the cosine and the sine of 2 pi b / 2^32, computed in fp64 and rounded to
// fp32. Cost: 35 ns a pair, nearly all of it in the math library; box_muller_pairs() takes a fifth of that per pair and
// gives the same bits. Thread rule: pure.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace ranklab {

std::array<float, 2> box_muller(uint32_t a, uint32_t b);

constexpr size_t kNormalsAtOnce = 64;
// normals[2i] and [2i + 1] = box_muller(words[2i], words[2i + 1]).
void box_muller_pairs(const uint32_t (&words)[kNormalsAtOnce], float (&normals)[kNormalsAtOnce]);

}  // namespace ranklab
