#include "core/parallel/tensor/overlapped_products.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/even_parts.h"
#include "core/nn/gemm.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

constexpr int64_t kMostPieces = 4;

std::vector<int64_t> pieces_of(int64_t positions) { return even_parts(positions, std::min(kMostPieces, positions)); }

std::vector<int64_t> with_first_and_last(const at::Tensor& x, int64_t first, int64_t last) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.front() = first;
  sizes.back() = last;
  return sizes;
}

// [S, .., n] -> [tp, rows of a rank, n].
at::Tensor by_rank(const at::Tensor& x, const TensorParallel& tp) {
  return x.view({tp.size(), x.numel() / x.size(-1) / tp.size(), x.size(-1)});
}

}  // namespace

at::Tensor product_of_gathered(const at::Tensor& x, const at::Tensor& weight, const TensorParallel& tp,
                               at::Tensor* gathered) {
  const std::vector<int64_t> pieces = pieces_of(x.size(0));
  const int64_t rows = x.numel() / x.size(-1) / x.size(0);  // of a position
  const auto gather = [&](int64_t first, int64_t length) {
    const MemoryScope memory(MemoryCategory::kGathered);
    return tp.comm->all_gather_async(x.narrow(0, first, length));
  };
  at::Tensor y = at::empty(with_first_and_last(x, x.size(0) * tp.size(), weight.size(1)), x.options());
  std::vector<at::Tensor> kept;
  int64_t first = 0;
  WorkPtr next = gather(0, pieces[0]);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const at::Tensor all = next->wait();
    if (i + 1 < pieces.size()) next = gather(first + pieces[i], pieces[i + 1]);
    gemm_groups_into(by_rank(y, tp).narrow(1, first * rows, pieces[i] * rows), by_rank(all, tp), weight);
    if (TypeWatch* watch = type_watch_of_thread) watch->is_product(y, all, weight);
    if (gathered != nullptr) kept.push_back(by_rank(all, tp));
    first += pieces[i];
  }
  if (gathered != nullptr) {
    const MemoryScope memory(MemoryCategory::kGathered);
    *gathered = at::cat(kept, 1).view(with_first_and_last(x, x.size(0) * tp.size(), x.size(-1)));
  }
  return y;
}

at::Tensor scattered_product(const at::Tensor& x, const at::Tensor& weight, const TensorParallel& tp) {
  const at::Tensor whole = x.contiguous(), by_source = by_rank(whole, tp);
  const int64_t positions = x.size(0) / tp.size(), rows = by_source.size(1) / positions;
  std::vector<at::Tensor> own;
  int64_t first = 0;
  WorkPtr last = nullptr;
  for (const int64_t length : pieces_of(positions)) {
    const at::Tensor part = at::empty(with_first_and_last(x, tp.size() * length, weight.size(1)), x.options());
    gemm_groups_into(by_rank(part, tp), by_source.narrow(1, first * rows, length * rows), weight);
    if (TypeWatch* watch = type_watch_of_thread) watch->is_product(part, whole, weight);
    WorkPtr reducing = tp.comm->reduce_scatter_async(part);
    if (last) own.push_back(last->wait());
    last = std::move(reducing);
    first += length;
  }
  own.push_back(last->wait());
  return own.size() == 1 ? own[0] : at::cat(own);
}

}  // namespace ranklab
