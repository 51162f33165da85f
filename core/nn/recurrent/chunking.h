// A sequence in chunks of equal length, within which a recurrence is products of matrices, and which of its positions
// share a document. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

// Which positions of a chunk share a segment, as factors of 1 and 0; undefined: all do.
struct SegmentFactors {
  at::Tensor pairs;   // [B or 1, 1, N, C, C]
  at::Tensor before;  // [B or 1, 1, N, C, 1]: with what the chunk before ended with
  at::Tensor end;     // ... and with what this chunk ends with
};

// N chunks of C positions each.
struct Chunking {
  int64_t length = 1, count = 1;
  int64_t missing = 0;  // positions added to the last chunk

  Chunking(int64_t positions, int64_t longest);
  // [.., S, W] -> [.., N, C, W], with zeros in the place of what is missing.
  at::Tensor chunked(const at::Tensor& x) const;
  // [.., N, C, W] -> [.., S, W]
  at::Tensor rows(const at::Tensor& x) const;
  // `segment_SB`: int64 [S, B or 1].
  SegmentFactors factors_of(const at::Tensor& segment_SB, at::ScalarType type) const;
};

}  // namespace ranklab
