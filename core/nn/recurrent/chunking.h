// Splits a sequence into chunks of equal length, within which a recurrence can be computed with matrix products, and
// tells which of its positions belong to the same document. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

// Which positions of a chunk belong to the same segment, as factors of 1 and 0; undefined: all of them do.
struct SegmentFactors {
  at::Tensor pairs;   // [B or 1, 1, N, C, C]
  at::Tensor before;  // [B or 1, 1, N, C, 1]: the same segment as the end of the previous chunk
  at::Tensor end;     // [B or 1, 1, N, C, 1]: the same segment as the end of this chunk
};

// N chunks of C positions each.
struct Chunking {
  int64_t length = 1, count = 1;
  int64_t missing = 0;  // padding positions in the last chunk

  Chunking(int64_t positions, int64_t longest);
  // [.., S, W] -> [.., N, C, W], padded with zeros.
  at::Tensor chunked(const at::Tensor& x) const;
  // [.., N, C, W] -> [.., S, W]
  at::Tensor rows(const at::Tensor& x) const;
  // `segment_SB`: int64 [S, B or 1].
  SegmentFactors factors_of(const at::Tensor& segment_SB, at::ScalarType type) const;
};

}  // namespace ranklab
