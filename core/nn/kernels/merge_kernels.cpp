#include "core/nn/kernels/merge_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/vector_clones.h"

namespace ranklab::kernels {
namespace {

RANKLAB_INLINE float wide(float x) { return x; }
RANKLAB_INLINE double wide(double x) { return x; }
RANKLAB_INLINE float wide(Bf16 x) { return widen(x); }
RANKLAB_INLINE float wide(Fp16 x) { return widen(x); }

template <typename T, typename W>
RANKLAB_INLINE void merge_body(MergeShape n, const MergeStrides& at, const T* part, const W* part_log_sum_exp, W* out,
                               W* log_sum_exp) {
  constexpr W kHidden = -std::numeric_limits<W>::infinity();
  for (int64_t i = 0; i < n.batch * n.heads * n.rows; ++i) {
    const int64_t row = i % n.rows, head = i / n.rows % n.heads, b = i / (n.rows * n.heads);
    const W added = part_log_sum_exp[at.part_log_sum_exp.of(b, head, row)];
    if (added == kHidden) continue;
    W& sum = log_sum_exp[at.log_sum_exp.of(b, head, row)];
    const W both = std::max(sum, added) + std::log1p(std::exp(-std::abs(sum - added)));
    const W old_share = std::exp(sum - both), new_share = std::exp(added - both);
    sum = both;
    W* const to = out + at.out.of(b, head, row);
    const T* const from = part + at.part.of(b, head, row);
    for (int64_t d = 0; d < n.head_dim; ++d) to[d] = to[d] * old_share + wide(from[d]) * new_share;
  }
}

}  // namespace

#define RANKLAB_MERGE_KERNEL(T, Wide)                                                             \
  RANKLAB_CLONES void merge_softmax(MergeShape shape, const MergeStrides& strides, const T* part, \
                                    const Wide* part_log_sum_exp, Wide* out, Wide* log_sum_exp) { \
    merge_body(shape, strides, part, part_log_sum_exp, out, log_sum_exp);                         \
  }
RANKLAB_MERGE_KERNEL(float, float)
RANKLAB_MERGE_KERNEL(double, double)
RANKLAB_MERGE_KERNEL(Bf16, float)
RANKLAB_MERGE_KERNEL(Fp16, float)

}  // namespace ranklab::kernels
