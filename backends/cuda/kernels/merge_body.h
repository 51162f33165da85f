// The per-thread code that merges attention over additional keys into a query's result so far
// (core/nn/attention/softmax_merge.h); several lanes share a row. Compiles for a GPU and for a test on a CPU. Thread
// rule: pure except for what it writes.
#pragma once
#include "backends/cuda/kernels/head_places.h"
#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

template <typename T>
struct MergeTask {
  int64_t batch = 0, heads = 0, rows = 0, head_dim = 0;
  HeadPlaces out_places, sum_places, part_places, part_sum_places;
  const T* part = nullptr;
  const Wide<T>* part_log_sum_exp = nullptr;
  Wide<T>* out = nullptr;
  Wide<T>* log_sum_exp = nullptr;

  RANKLAB_BOTH int64_t all_rows() const { return batch * heads * rows; }
};

// A row's sum of exponentials without and with the new part. All lanes of the row compute this before one of them
// writes.
template <typename T>
struct MergedRow {
  const T* part = nullptr;
  Wide<T>* out = nullptr;
  Wide<T>* log_sum_exp = nullptr;
  Wide<T> both = 0, old_share = 1, new_share = 0;
  bool changes = false;
};

template <typename T>
RANKLAB_BOTH MergedRow<T> merged_row(const MergeTask<T>& n, int64_t i) {
  using W = Wide<T>;
  const int64_t of_head = quotient(i, n.rows), row = i - of_head * n.rows;
  const int64_t b = quotient(of_head, n.heads), head = of_head - b * n.heads;
  MergedRow<T> r;
  r.part = n.part + n.part_places.of(b, head, row);
  r.out = n.out + n.out_places.of(b, head, row);
  r.log_sum_exp = n.log_sum_exp + n.sum_places.of(b, head, row);
  const W sum = *r.log_sum_exp, added = n.part_log_sum_exp[n.part_sum_places.of(b, head, row)];
  r.changes = added != -W(INFINITY);  // also for NaN
  if (!r.changes) return r;
  const W apart = sum < added ? added - sum : sum - added;
  r.both = (sum < added ? added : sum) + log_of_one_plus(power_of_e(-apart));
  r.old_share = power_of_e(sum - r.both);
  r.new_share = power_of_e(added - r.both);
  return r;
}

template <int kItems, typename T>
RANKLAB_BOTH void merge_share(const MergeTask<T>& n, const MergedRow<T>& r, int lane, int lanes) {
  if (!r.changes) return;
  for (int64_t d = int64_t{lane} * kItems; d < n.head_dim; d += int64_t{lanes} * kItems) {
    Wide<T> sum[kItems], part[kItems];
    load<kItems>(r.out + d, sum);
    load<kItems>(r.part + d, part);
    RANKLAB_UNROLL
    for (int i = 0; i < kItems; ++i) sum[i] = sum[i] * r.old_share + part[i] * r.new_share;
    store<kItems>(sum, r.out + d);
  }
  if (lane == 0) *r.log_sum_exp = r.both;
}

// Whether packs of this many elements are aligned to their size in all rows.
template <int kItems, typename T>
inline bool in_row_packs(const MergeTask<T>& n) {
  const auto fits = [](const auto* address, const HeadPlaces& p, size_t bytes) {
    return reinterpret_cast<uintptr_t>(address) % (kItems * bytes) == 0 && p.batch % kItems == 0 &&
           p.head % kItems == 0 && p.seq % kItems == 0;
  };
  return n.head_dim % kItems == 0 && fits(n.part, n.part_places, sizeof(T)) &&
         fits(n.out, n.out_places, sizeof(Wide<T>));
}

}  // namespace ranklab::rows
