#include "core/nn/recurrent/chunking.h"

#include <algorithm>

#include "core/sim/aten.h"

namespace ranklab {

Chunking::Chunking(int64_t positions, int64_t longest)
    : length(std::min(longest, positions)),
      count((positions + length - 1) / length),
      missing((count * length) - positions) {}

at::Tensor Chunking::chunked(const at::Tensor& x) const {
  const at::Tensor whole = missing > 0 ? at::constant_pad_nd(x, {0, 0, 0, missing}) : x;
  auto sizes = whole.sizes().vec();
  sizes.insert(sizes.end() - 1, length);
  sizes[sizes.size() - 3] = count;
  return whole.reshape(sizes);
}

at::Tensor Chunking::rows(const at::Tensor& x) const {
  return x.flatten(-3, -2).narrow(-2, 0, (count * length) - missing);
}

SegmentFactors Chunking::factors_of(const at::Tensor& segment_SB, at::ScalarType type) const {
  at::Tensor of_rows = segment_SB.t();
  if (missing > 0) of_rows = at::cat({of_rows, of_rows.narrow(1, of_rows.size(1) - 1, 1).expand({-1, missing})}, 1);
  const at::Tensor own = of_rows.reshape({of_rows.size(0), 1, count, length, 1});
  const at::Tensor last = own.narrow(3, length - 1, 1);
  // Before the first chunk there is only the state of decoding, which has a single segment.
  const at::Tensor before = at::cat({own.narrow(2, 0, 1).narrow(3, 0, 1), last.narrow(2, 0, count - 1)}, 2);
  return {(own == own.transpose(-1, -2)).to(type), (own == before).to(type), (own == last).to(type)};
}

}  // namespace ranklab
