#include <bit>
#include <cstddef>

#include "core/comm/reduce_types.h"
#include "core/comm/tree_reduce.h"

namespace ranklab {
namespace {

template <ReduceOp op, typename T, typename A>
A reduce_range(std::span<const void* const> inputs, size_t low, size_t high, int64_t element) {
  if (high - low == 1) return static_cast<A>(static_cast<const T*>(inputs[low])[element]);
  const size_t middle = low + std::bit_floor(high - low - 1);
  const A left = reduce_range<op, T, A>(inputs, low, middle, element);
  const A right = reduce_range<op, T, A>(inputs, middle, high, element);
  return reduce_types::combine<op, A>(left, right);
}

}  // namespace

void tree_reduce_reference(const Reduction& reduction, std::span<const void* const> inputs, void* output,
                           int64_t count) {
  reduce_types::visit(reduction, [&](auto types, auto op) {
    using T = typename decltype(types)::Stored;
    using A = typename decltype(types)::Added;
    for (int64_t i = 0; i < count; ++i) {
      const A sum = reduce_range<decltype(op)::value, T, A>(inputs, 0, inputs.size(), i);
      static_cast<T*>(output)[i] =
          reduce_types::finish<decltype(op)::value, T, A>(sum, static_cast<int>(inputs.size()));
    }
  });
}

}  // namespace ranklab
