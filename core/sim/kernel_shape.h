// What besides FLOPs and bytes decides how long a kernel takes. Thread rule: plain data.
#pragma once
#include <cstdint>

namespace ranklab {

struct KernelShape {
  enum class Kind : uint8_t {
    kOther,      // memory-bound
    kProduct,    // [m, k] x [k, n], `batches` of them in one kernel
    kAttention,  // m queries of all heads, n keys that one attends to in the mean, k wide
  };
  Kind kind = Kind::kOther;
  double m = 0, n = 0, k = 0, batches = 1;
  bool backward = false;  // of attention

  static KernelShape product(double m, double n, double k, double batches = 1) {
    return {Kind::kProduct, m, n, k, batches};
  }
  static KernelShape attention(double queries, double keys, double width) {
    return {Kind::kAttention, queries, keys, width};
  }
  KernelShape of_backward() const {
    KernelShape shape = *this;
    shape.backward = true;
    return shape;
  }
};

}  // namespace ranklab
