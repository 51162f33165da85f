#include "core/parallel/context/position_order.h"

#include <vector>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

// [S, ...] -> [a, b, S / (a b), ...]
at::Tensor split_first(const at::Tensor& x, int64_t a, int64_t b) {
  std::vector<int64_t> sizes = {a, b, x.size(0) / (a * b)};
  sizes.insert(sizes.end(), x.sizes().begin() + 1, x.sizes().end());
  return x.reshape(sizes);
}

}  // namespace

at::Tensor rank_after_rank(const at::Tensor& x, int ranks, SequenceBalance balance) {
  if (ranks == 1 || balance == SequenceBalance::kContiguous) return x;
  if (balance == SequenceBalance::kStripe)
    return split_first(x, x.size(0) / ranks, ranks).transpose(0, 1).reshape(x.sizes());
  const at::Tensor chunks = split_first(x, 1, 2 * ranks).select(0, 0);
  std::vector<at::Tensor> ordered;
  for (int rank = 0; rank < ranks; ++rank)
    for (const int chunk : {rank, 2 * ranks - 1 - rank}) ordered.push_back(chunks.select(0, chunk));
  return at::stack(ordered).reshape(x.sizes());
}

at::Tensor in_position_order(const at::Tensor& x, int ranks, SequenceBalance balance) {
  if (ranks == 1 || balance == SequenceBalance::kContiguous) return x;
  if (balance == SequenceBalance::kStripe)
    return split_first(x, ranks, x.size(0) / ranks).transpose(0, 1).reshape(x.sizes());
  const at::Tensor chunks = split_first(x, 1, 2 * ranks).select(0, 0);
  std::vector<at::Tensor> ordered;
  for (int chunk = 0; chunk < 2 * ranks; ++chunk)
    ordered.push_back(chunks.select(0, chunk < ranks ? 2 * chunk : 2 * (2 * ranks - 1 - chunk) + 1));
  return at::stack(ordered).reshape(x.sizes());
}

}  // namespace ranklab
