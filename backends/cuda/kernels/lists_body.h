// The per-lane code of multi-tensor kernels: sums of squares of gradients, and AdamW's update (Loshchilov and Hutter
// 2019, arXiv 1711.05101) of weights and moments that may be stored in 16 bits, from a gradient of any type, also
// writing the rounded weight. Tensors are cut into chunks, one per block. Compiles for a GPU and for a test on a CPU.
// Thread rule: pure except for what it writes.
#pragma once
#include <type_traits>

#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

constexpr int64_t kChunk = int64_t{1} << 16;

// An element type that is known only at run time. The order is that of ranklab::DeviceNumber.
enum class Kind : int { kFp32, kFp64, kBf16, kFp16 };

RANKLAB_BOTH int64_t bytes_of(Kind kind) { return kind == Kind::kFp64 ? 8 : (kind == Kind::kFp32 ? 4 : 2); }

// Loads kItems elements, starting at element `at`.
template <int kItems, typename W>
RANKLAB_BOTH void load_kind(Kind kind, const void* from, int64_t at, W* to) {
  const auto cast = [&](auto* typed) {
    Wide<std::remove_const_t<std::remove_pointer_t<decltype(typed)>>> wide[kItems];
    load<kItems>(typed + at, wide);
    RANKLAB_UNROLL
    for (int i = 0; i < kItems; ++i) to[i] = static_cast<W>(wide[i]);
  };
  if (kind == Kind::kFp32) return cast(static_cast<const float*>(from));
  if (kind == Kind::kBf16) return cast(static_cast<const Bf16*>(from));
  if (kind == Kind::kFp16) return cast(static_cast<const Fp16*>(from));
  cast(static_cast<const double*>(from));
}
template <int kItems, typename W>
RANKLAB_BOTH void store_kind(Kind kind, const W* from, void* to, int64_t at) {
  const auto cast = [&](auto* typed) {
    Wide<std::remove_pointer_t<decltype(typed)>> wide[kItems];
    RANKLAB_UNROLL
    for (int i = 0; i < kItems; ++i) wide[i] = static_cast<Wide<std::remove_pointer_t<decltype(typed)>>>(from[i]);
    store<kItems>(wide, typed + at);
  };
  if (kind == Kind::kFp32) return cast(static_cast<float*>(to));
  if (kind == Kind::kBf16) return cast(static_cast<Bf16*>(to));
  if (kind == Kind::kFp16) return cast(static_cast<Fp16*>(to));
  cast(static_cast<double*>(to));
}

// A part of a tensor processed by a team: elements [begin, end).
struct Chunk {
  int64_t begin = 0, end = 0;
};

// Calls one<kItems>(first) for this lane's elements of a chunk, in packs if `packs` and singly at the end.
template <int kItems, typename F>
RANKLAB_BOTH void for_share(Chunk chunk, bool packs, int lane, int lanes, const F& one) {
  int64_t begin = chunk.begin;
  if (packs) {
    const int64_t whole = chunk.begin + (chunk.end - chunk.begin) / kItems * kItems;
    RANKLAB_UNROLL_4
    for (int64_t at = chunk.begin + static_cast<int64_t>(lane) * kItems; at < whole;
         at += static_cast<int64_t>(lanes) * kItems)
      one.template operator()<kItems>(at);
    begin = whole;
  }
  for (int64_t at = begin + lane; at < chunk.end; at += lanes) one.template operator()<1>(at);
}

struct SquaresTensor {
  const void* numbers = nullptr;
  int64_t count = 0;
  bool packs = false;
};

RANKLAB_BOTH double squares_of_share(const SquaresTensor& tensor, Kind kind, Chunk chunk, int lane, int lanes) {
  double total = 0;
  for_share<8>(chunk, tensor.packs, lane, lanes, [&]<int kItems>(int64_t at) {
    double x[kItems];
    load_kind<kItems>(kind, tensor.numbers, at, x);
    RANKLAB_UNROLL
    for (int i = 0; i < kItems; ++i) total += x[i] * x[i];
  });
  return total;
}

struct AdamTensor {
  void* weight = nullptr;
  void* exp_avg = nullptr;
  void* exp_avg_sq = nullptr;
  const void* grad = nullptr;
  void* copy = nullptr;  // the weight in the model's type; null: `weight` itself has that type
  int64_t count = 0;
  bool packs = false;
};
struct AdamKinds {
  Kind weight, exp_avg, exp_avg_sq, grad, copy;
};
struct AdamRule {
  double beta1, beta2, epsilon;
  double factor;      // multiplies gradients
  double keep;        // multiplies the weight: weight decay
  double step;        // learning rate / the first moment's bias correction
  double sqrt_scale;  // 1 / sqrt(the second moment's bias correction)
};

template <typename W>
RANKLAB_BOTH void adam_of_share(const AdamTensor& t, const AdamKinds& kinds, const AdamRule& rule, Chunk chunk,
                                int lane, int lanes) {
  const W beta1 = static_cast<W>(rule.beta1), beta2 = static_cast<W>(rule.beta2);
  const W rest1 = static_cast<W>(1 - rule.beta1), rest2 = static_cast<W>(1 - rule.beta2);
  const W factor = static_cast<W>(rule.factor), keep = static_cast<W>(rule.keep), step = static_cast<W>(rule.step);
  const W sqrt_scale = static_cast<W>(rule.sqrt_scale), epsilon = static_cast<W>(rule.epsilon);
  for_share<16 / sizeof(W)>(chunk, t.packs, lane, lanes, [&]<int kItems>(int64_t at) {
    W weight[kItems], m[kItems], v[kItems], grad[kItems];
    load_kind<kItems>(kinds.weight, t.weight, at, weight);
    load_kind<kItems>(kinds.exp_avg, t.exp_avg, at, m);
    load_kind<kItems>(kinds.exp_avg_sq, t.exp_avg_sq, at, v);
    load_kind<kItems>(kinds.grad, t.grad, at, grad);
    RANKLAB_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const W g = grad[i] * factor;
      m[i] = beta1 * m[i] + rest1 * g;
      v[i] = beta2 * v[i] + rest2 * g * g;
      weight[i] = weight[i] * keep - step * m[i] / (root(v[i]) * sqrt_scale + epsilon);
    }
    store_kind<kItems>(kinds.weight, weight, t.weight, at);
    store_kind<kItems>(kinds.exp_avg, m, t.exp_avg, at);
    store_kind<kItems>(kinds.exp_avg_sq, v, t.exp_avg_sq, at);
    if (t.copy != nullptr) store_kind<kItems>(kinds.copy, weight, t.copy, at);
  });
}

}  // namespace ranklab::rows
