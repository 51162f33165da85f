// Interleaved rotary embedding: the rotated pairs of a head are adjacent elements, (x[2i], x[2i + 1]), as in RoFormer
// (Su et al. 2021, arXiv 2104.09864), GPT-J and Meta's own LLaMA. Attention here rotates halves (rope.h). Since a score
// does not depend on the order of elements as long as query and key share it, both are permuted into the order of
// halves before attention, and stay in it. Cost: none is charged, because a kernel would read the pairs where they are.
// Memory: new queries and keys, which replace the projection's output. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

// Which elements of each head are pairs: `rotary` elements from `first` on. The elements after these are split into
// halves, too: each half of a head gets one half of them, after its half of the pairs.
struct RotaryPairs {
  int64_t head = 0;  // elements of a head
  int64_t first = 0;
  int64_t rotary = 0;
};

// x [..., heads x head, others]: permutes the elements of the first `heads` heads into the order of halves.
at::Tensor halves_of_pairs(const at::Tensor& x, int64_t heads, const RotaryPairs& pairs);

}  // namespace ranklab
