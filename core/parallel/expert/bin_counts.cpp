#include "core/parallel/expert/bin_counts.h"

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {

at::Tensor bin_counts(const at::Tensor& values, int64_t bins) {
  if (!values.is_cuda()) return at::bincount(values, {}, bins);
  // Charged like the host's operator.
  const double bytes = static_cast<double>(values.nbytes()) + static_cast<double>(bins) * sizeof(int64_t);
  const CostScope cost("bincount", 0.0, bytes, DType::kOther);
  return at::zeros({bins}, values.options()).scatter_add_(0, values, at::ones_like(values));
}

at::Tensor order_by_value(const at::Tensor& values) {
  return std::get<1>(at::sort(values, /*stable=*/true, /*dim=*/0, /*descending=*/false));
}

at::Tensor numbers_in_bins(const at::Tensor& sorted, int64_t bins) {
  const at::Tensor counts = bin_counts(sorted, bins);
  return at::arange(sorted.size(0), sorted.options()) - (counts.cumsum(0) - counts).index_select(0, sorted);
}

}  // namespace ranklab
