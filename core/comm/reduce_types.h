// Shared by tree_reduce.cpp and its reference: the C++ type that stores an element, the type in which elements are
// added, and how two elements combine.
#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <type_traits>

#include "core/comm/tree_reduce.h"

namespace ranklab::reduce_types {

template <typename T>
inline constexpr bool kIs16Bit = std::is_same_v<T, c10::BFloat16> || std::is_same_v<T, c10::Half>;

template <ReduceOp op, typename A>
inline A combine(A a, A b) {
  if constexpr (op == ReduceOp::kMin) {
    return (a != a || a < b) ? a : b;
  } else if constexpr (op == ReduceOp::kMax) {
    return (a != a || a > b) ? a : b;
  } else if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;  // signed overflow is undefined, unsigned wraps
    return static_cast<A>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

// The last step: divides for averages, and rounds to the stored type.
template <ReduceOp op, typename T, typename A>
inline T finish(A value, int n) {
  if constexpr (op == ReduceOp::kAvg && !std::is_integral_v<A>) {
    return static_cast<T>(static_cast<A>(value / static_cast<A>(n)));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T, typename A>
struct Types {
  using Stored = T;
  using Added = A;
};
template <ReduceOp op>
using OpTag = std::integral_constant<ReduceOp, op>;

template <typename Stored, typename F>
void visit_added(const Reduction& r, F&& f) {
  if constexpr (kIs16Bit<Stored>) {
    if (r.in_fp32) return f(Types<Stored, float>{});
  }
  f(Types<Stored, Stored>{});
}

// Calls f(Types, OpTag) for the reduction. REQUIRES: can_reduce.
template <typename F>
void visit(const Reduction& r, F&& f) {
  const auto with_op = [&](auto types) {
    switch (r.op) {
      case ReduceOp::kSum:
        return f(types, OpTag<ReduceOp::kSum>{});
      case ReduceOp::kAvg:
        return f(types, OpTag<ReduceOp::kAvg>{});
      case ReduceOp::kMin:
        return f(types, OpTag<ReduceOp::kMin>{});
      case ReduceOp::kMax:
        return f(types, OpTag<ReduceOp::kMax>{});
    }
  };
  switch (r.dtype) {
    case DType::kFloat32:
      return visit_added<float>(r, with_op);
    case DType::kFloat64:
      return visit_added<double>(r, with_op);
    case DType::kBFloat16:
      return visit_added<c10::BFloat16>(r, with_op);
    case DType::kFloat16:
      return visit_added<c10::Half>(r, with_op);
    case DType::kInt64:
      return visit_added<int64_t>(r, with_op);
    case DType::kInt32:
      return visit_added<int32_t>(r, with_op);
    case DType::kUInt8:
      return visit_added<uint8_t>(r, with_op);
    default:
      return;  // excluded by can_reduce
  }
}

}  // namespace ranklab::reduce_types
