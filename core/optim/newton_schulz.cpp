#include "core/optim/newton_schulz.h"

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

constexpr double kLeastNorm = 1e-7;

}  // namespace

at::Tensor newton_schulz(const at::Tensor& matrix, int64_t steps, std::optional<at::ScalarType> type) {
  const auto [a, b, c] = kNewtonSchulz;
  const bool tall = matrix.size(0) > matrix.size(1);
  // Copied into new memory, so that products of equal matrices have equal bits whatever the matrix's address was.
  at::Tensor x = at::empty(tall ? matrix.t().sizes() : matrix.sizes(),
                           matrix.options().dtype(type.value_or(matrix.scalar_type())));
  x.copy_(tall ? matrix.t() : matrix);
  x.div_(x.norm().clamp_min(kLeastNorm));
  for (int64_t step = 0; step < steps; ++step) {
    const at::Tensor gram = without_scratch([&] { return x.mm(x.t()); });
    const at::Tensor factor = without_scratch([&] { return gram.addmm(gram, gram, b, c); });
    x = without_scratch([&] { return x.addmm(factor, x, a); });
  }
  return (tall ? x.t() : x).to(matrix.scalar_type());
}

}  // namespace ranklab
