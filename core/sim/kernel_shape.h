// The properties of a kernel besides FLOPs and bytes that determine how long it takes. Thread rule: plain data.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace ranklab {

struct KernelShape {
  enum class Kind : uint8_t {
    kOther,       // memory-bound
    kProduct,     // [m, k] x [k, n], `batches` of them in one kernel
    kLowProduct,  // the same with operands in 8 or 4 bits
    kAttention,   // m: queries of all heads, n: keys to which a query attends on average, k: width of a head
    kQuantize,    // memory-bound: rounds an operand of a product
    kLoss,        // memory-bound: cross entropy of logits
  };
  static constexpr size_t kKinds = 6;
  Kind kind = Kind::kOther;
  double m = 0, n = 0, k = 0, batches = 1;
  bool backward = false;  // for attention
  bool square = false;    // for attention: every query attends to every key, not just the causal half
  int bits = 16;          // of a product's operands: 16 or more, 8 or 4
  int launches = 1;       // for a product of experts: their number, because software launches a kernel for each

  static KernelShape product(double m, double n, double k, double batches = 1) {
    return {Kind::kProduct, m, n, k, batches};
  }
  static KernelShape attention(double queries, double keys, double width) {
    return {Kind::kAttention, queries, keys, width};
  }
  static KernelShape quantize() { return {Kind::kQuantize}; }
  static KernelShape loss() { return {Kind::kLoss}; }
  KernelShape of_bits(int operand_bits) const {
    KernelShape shape = *this;
    shape.bits = operand_bits;
    if (operand_bits < 16) shape.kind = Kind::kLowProduct;
    return shape;
  }
  KernelShape of_square() const {
    KernelShape shape = *this;
    shape.square = true;
    return shape;
  }
  KernelShape of_backward() const {
    KernelShape shape = *this;
    shape.backward = true;
    return shape;
  }
};

// In the order of KernelShape::Kind.
inline constexpr std::array<const char*, KernelShape::kKinds> kKernelKindNames = {
    "elementwise", "products", "low-bit products", "attention", "quantization", "loss"};

// Nanoseconds in kernels of each kind.
struct KernelTimes {
  std::array<int64_t, KernelShape::kKinds> ns{};
  int64_t launch_ns = 0;  // time between kernels, waiting for the host to launch the next one
  int64_t launches = 0;   // number of kernels

  void add(const KernelTimes& more) {
    for (size_t kind = 0; kind < ns.size(); ++kind) ns[kind] += more.ns[kind];
    launch_ns += more.launch_ns;
    launches += more.launches;
  }
  KernelTimes since(const KernelTimes& before) const {
    KernelTimes spent = *this;
    for (size_t kind = 0; kind < ns.size(); ++kind) spent.ns[kind] -= before.ns[kind];
    spent.launch_ns -= before.launch_ns;
    spent.launches -= before.launches;
    return spent;
  }
};

}  // namespace ranklab
