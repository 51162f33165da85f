// The per-thread code that splits a fused projection into queries, keys and values, with rotary embedding in the halves
// convention (a, b) -> (a cos - b sin, a sin + b cos), and its inverse. A thread handles a pack of a head's first half
// and the same pack of its second half. Compiles for a GPU and for a test on a CPU. Thread rule: pure except for what
// it writes.
#pragma once
#include "backends/cuda/kernels/head_places.h"
#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

// The number of heads whose packs a thread handles one after another, with the same angles.
constexpr int kHeadsOfThread = 4;

// qkv [S, B, (heads + 2 groups) head_dim], laid out [q | k | v].
template <typename T>
struct QkvTask {
  int64_t seq = 0, batch = 0, heads = 0, groups = 0, head_dim = 0, table_stride = 0;
  HeadPlaces q_places, k_places, v_places;
  // [S, head_dim / 2], the table of sequence b at offset b * table_stride; null: no rotation
  const Wide<T>* cos = nullptr;
  const Wide<T>* sin = nullptr;
  T* qkv = nullptr;
  T* q = nullptr;
  T* k = nullptr;
  T* v = nullptr;

  RANKLAB_BOTH int64_t half() const { return (head_dim + 1) / 2; }
  RANKLAB_BOTH int64_t rows() const { return seq * batch; }
  RANKLAB_BOTH int64_t all_heads() const { return heads + 2 * groups; }
  // The number of packs per row; each has kItems elements of each of kHeadsOfThread heads.
  RANKLAB_BOTH int64_t packs(int items) const {
    return (all_heads() + kHeadsOfThread - 1) / kHeadsOfThread * (half() / items);
  }
};

// The angles of a pack, read once for all heads of a thread.
template <int kItems, typename W>
struct Angles {
  bool turned = false;
  W cos[kItems] = {}, sin[kItems] = {};
};
template <int kItems, typename T>
RANKLAB_BOTH Angles<kItems, Wide<T>> angles_at(const QkvTask<T>& n, int64_t place) {
  using W = Wide<T>;
  Angles<kItems, W> angles;
  if (n.cos == nullptr) return angles;
  angles.turned = true;
  constexpr int kEach = kItems < kPack<W> ? kItems : kPack<W>;
  RANKLAB_UNROLL
  for (int k = 0; k < kItems; k += kEach) {
    load<kEach>(n.cos + place + k, angles.cos + k);
    load<kEach>(n.sin + place + k, angles.sin + k);
  }
  return angles;
}

// kSplits: copies from qkv into the heads, rotated by the position's angle; otherwise from the heads into qkv, rotated
// back.
template <bool kSplits, int kItems, typename T>
RANKLAB_BOTH void rotate_head(const QkvTask<T>& n, int64_t row, int64_t head, int64_t i,
                              const Angles<kItems, Wide<T>>& angles) {
  using W = Wide<T>;
  const int64_t half = n.half(), s = quotient(row, n.batch), b = remainder_of(row, n.batch);
  const bool is_q = head < n.heads, is_k = !is_q && head < n.heads + n.groups;
  const HeadPlaces places = is_q ? n.q_places : (is_k ? n.k_places : n.v_places);
  const int64_t local = is_q ? head : (is_k ? head - n.heads : head - n.heads - n.groups);
  T* heads = (is_q ? n.q : (is_k ? n.k : n.v)) + places.of(b, local, s);
  T* fused = n.qkv + (row * n.all_heads() + head) * n.head_dim;
  const T* from = kSplits ? fused : heads;
  T* to = kSplits ? heads : fused;
  W first[kItems], second[kItems] = {};
  const bool has_second = half + i < n.head_dim;  // an odd head's last element has no partner
  load<kItems>(from + i, first);
  if (has_second) load<kItems>(from + half + i, second);
  if (angles.turned && (is_q || is_k)) {
    RANKLAB_UNROLL
    for (int k = 0; k < kItems; ++k) {
      const W c = angles.cos[k], turn = kSplits ? angles.sin[k] : -angles.sin[k];
      const W a = first[k];
      first[k] = a * c - second[k] * turn;
      second[k] = a * turn + second[k] * c;
    }
  }
  store<kItems>(first, to + i);
  if (has_second) store<kItems>(second, to + half + i);
}

template <bool kSplits, int kItems, typename T>
RANKLAB_BOTH void rotate_pack(const QkvTask<T>& n, int64_t row, int64_t pack) {
  const int64_t each = quotient(n.half(), kItems), first = quotient(pack, each) * kHeadsOfThread;
  const int64_t i = remainder_of(pack, each) * kItems, s = quotient(row, n.batch);
  const auto angles = angles_at<kItems>(n, s * n.half() + (row - s * n.batch) * n.table_stride + i);
  RANKLAB_UNROLL
  for (int k = 0; k < kHeadsOfThread; ++k) {
    if (first + k < n.all_heads()) rotate_head<kSplits, kItems>(n, row, first + k, i, angles);
  }
}

}  // namespace ranklab::rows
