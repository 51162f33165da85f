#include "core/comm/tree_reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/comm/reduce_types.h"

namespace ranklab {
namespace {

using reduce_types::combine;
using reduce_types::finish;

constexpr int64_t kBlockBytes = 8192;  // in the accumulation type: inputs and partial sums of a block stay in L1/L2
constexpr int kMaxLevels = 32;

// Sums of N = 1, 2, 4 or 8 consecutive leaves: the whole subtree in one pass. An output may be one of the inputs, but
// only element by element, so the loops have no carried dependency.
template <ReduceOp op, int N, typename T, typename A>
inline A subtree_at(const T* const* in, int64_t i) {
  if constexpr (N == 1) {
    return static_cast<A>(in[0][i]);
  } else {
    return combine<op, A>(subtree_at<op, N / 2, T, A>(in, i), subtree_at<op, N / 2, T, A>(in + N / 2, i));
  }
}

template <ReduceOp op, int N, typename T, typename A>
void subtree(const T* const* leaves, A* out, int64_t count) {
  std::array<const T*, N> in;
  std::copy_n(leaves, N, in.begin());
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = subtree_at<op, N, T, A>(in.data(), i);
}

template <ReduceOp op, typename T, typename A>
void subtree_of(int leaves, const T* const* in, A* out, int64_t count) {
  switch (leaves) {
    case 8:
      return subtree<op, 8>(in, out, count);
    case 4:
      return subtree<op, 4>(in, out, count);
    case 2:
      return subtree<op, 2>(in, out, count);
    default:
      return subtree<op, 1>(in, out, count);
  }
}

template <ReduceOp op, typename A>
void combine_into(A* left, const A* right, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) left[i] = combine<op, A>(left[i], right[i]);
}

// Passes one block through the tree, like a binary counter: subtrees of 8 leaves are pushed and equal sizes merge,
// which gives the tree described in the header; the rest (descending powers of two) is folded from the right. The
// result is in levels[0].
template <ReduceOp op, typename T, typename A>
void reduce_block(std::span<const T* const> in, int64_t count, A* levels) {
  const int n = static_cast<int>(in.size());
  std::array<int, kMaxLevels> sizes;
  int depth = 0;
  const int64_t stride = kBlockBytes / static_cast<int64_t>(sizeof(A));
  const auto merge = [&] {
    combine_into<op>(levels + (depth - 2) * stride, levels + (depth - 1) * stride, count);
    sizes[static_cast<size_t>(depth - 2)] += sizes[static_cast<size_t>(depth - 1)];
    --depth;
  };
  for (int next = 0; next < n;) {
    const int leaves = std::min<int>(8, static_cast<int>(std::bit_floor(static_cast<unsigned>(n - next))));
    subtree_of<op, T, A>(leaves, in.data() + next, levels + depth * stride, count);
    sizes[static_cast<size_t>(depth++)] = leaves;
    next += leaves;
    while (depth > 1 && sizes[static_cast<size_t>(depth - 1)] == sizes[static_cast<size_t>(depth - 2)]) merge();
  }
  while (depth > 1) merge();
}

template <ReduceOp op, typename T, typename A>
void reduce_all(std::span<const void* const> inputs, std::span<void* const> outputs, int64_t count) {
  constexpr int64_t kBlock = kBlockBytes / static_cast<int64_t>(sizeof(A));
  const int n = static_cast<int>(inputs.size());
  // The number of levels that can be open at once: one per power of two of the subtrees of 8, and those of sizes 4, 2
  // and 1.
  constexpr int kStackLevels = 12;
  RANKLAB_CHECK(n < 1 << (kStackLevels - 2), ErrorKind::kInvalidArgument, .where = "tree_reduce",
                .what = "too many inputs", .got = std::to_string(n), .want = "at most 1023",
                .fix = "use smaller groups");
  alignas(64) std::array<A, static_cast<size_t>(kBlock * kStackLevels)> levels;
  alignas(64) std::array<T, static_cast<size_t>(kBlock)> rounded;
  std::array<const T*, 1024> in;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin);
    for (int i = 0; i < n; ++i)
      in[static_cast<size_t>(i)] = static_cast<const T*>(inputs[static_cast<size_t>(i)]) + begin;
    reduce_block<op, T, A>({in.data(), static_cast<size_t>(n)}, length, levels.data());
    const T* result = reinterpret_cast<const T*>(levels.data());
    if constexpr (!std::is_same_v<T, A> || op == ReduceOp::kAvg) {
      for (int64_t i = 0; i < length; ++i)
        rounded[static_cast<size_t>(i)] = finish<op, T, A>(levels[static_cast<size_t>(i)], n);
      result = rounded.data();
    }
    for (void* output : outputs)
      std::memcpy(static_cast<T*>(output) + begin, result, static_cast<size_t>(length) * sizeof(T));
  }
}

}  // namespace

bool can_reduce(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBFloat16:
    case DType::kFloat16:
      return true;
    case DType::kInt64:
    case DType::kInt32:
    case DType::kUInt8:
      return op != ReduceOp::kAvg;
    default:
      return false;
  }
}

void tree_reduce(const Reduction& reduction, std::span<const void* const> inputs, std::span<void* const> outputs,
                 int64_t count) {
  RANKLAB_CHECK(can_reduce(reduction.dtype, reduction.op) && !inputs.empty(), ErrorKind::kInternal,
                .where = "tree_reduce", .what = "cannot reduce this",
                .got = std::string(name(reduction.dtype)) + ", " + std::string(name(reduction.op)));
  reduce_types::visit(reduction, [&](auto types, auto op) {
    using Chosen = decltype(types);
    reduce_all<decltype(op)::value, typename Chosen::Stored, typename Chosen::Added>(inputs, outputs, count);
  });
}

}  // namespace ranklab
