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

}  // namespace ranklab
