// The per-lane code of (add +) RMSNorm of a row, forward and backward: several lanes share a row, pack by pack, and a
// lane keeps what it has read in registers, so that memory is read once. A row too long for the registers is read
// twice. Sums over lanes are computed by the caller (norm_kernels.cu, or a loop in a test). Cost: one read and one
// write of each operand. Thread rule: pure except for what it writes.
#pragma once
#include "backends/cuda/kernels/numbers.h"

namespace ranklab::rows {

// Which packs of a row a lane handles: lane `lane` of `lanes` has packs lane, lane + lanes, ...
struct Share {
  int lane = 0, lanes = 1;
};

// sum = x + branch (null: nothing is added or written); out = sum * inv_rms * weight.
template <typename T>
struct NormRow {
  int64_t cols = 0;
  const T* x = nullptr;
  const T* branch = nullptr;
  const T* weight = nullptr;
  T* sum = nullptr;
  T* out = nullptr;
  Wide<T> weight_offset = 0;  // added to the weight
};

// `kPacks` packs of kItems elements are kept in registers.
template <typename T, int kItems, int kPacks>
struct NormLane {
  using W = Wide<T>;
  W kept[kItems * kPacks];

  static RANKLAB_BOTH int64_t span(Share s) { return static_cast<int64_t>(s.lanes) * kItems * kPacks; }
  static RANKLAB_BOTH int64_t column(Share s, int64_t first, int pack) {
    return first + (static_cast<int64_t>(pack) * s.lanes + s.lane) * kItems;
  }

  RANKLAB_BOTH W squares(const NormRow<T>& row, Share s) {
    W total = 0;
    for (int64_t first = 0; first < row.cols; first += span(s)) {
      RANKLAB_UNROLL
      for (int p = 0; p < kPacks; ++p) {
        const int64_t at = column(s, first, p);
        if (at >= row.cols) continue;
        W* v = kept + p * kItems;
        load<kItems>(row.x + at, v);
        if (row.branch != nullptr) {
          W added[kItems];
          load<kItems>(row.branch + at, added);
          RANKLAB_UNROLL
          // rounded, since backward only has the rounded sum
          for (int i = 0; i < kItems; ++i) v[i] = rounded<T>(v[i] + added[i]);
          store<kItems>(v, row.sum + at);
        }
        RANKLAB_UNROLL
        for (int i = 0; i < kItems; ++i) total += v[i] * v[i];
      }
    }
    return total;
  }

  // `reads`: squares() was not called for this row.
  RANKLAB_BOTH void write(const NormRow<T>& row, Share s, W inv_rms, bool reads = false) {
    const T* again = row.branch != nullptr ? row.sum : row.x;
    for (int64_t first = 0; first < row.cols; first += span(s)) {
      RANKLAB_UNROLL
      for (int p = 0; p < kPacks; ++p) {
        const int64_t at = column(s, first, p);
        if (at >= row.cols) continue;
        W *v = kept + p * kItems, weight[kItems];
        if (reads || row.cols > span(s)) load<kItems>(again + at, v);
        load<kItems>(row.weight + at, weight);
        RANKLAB_UNROLL
        for (int i = 0; i < kItems; ++i) weight[i] = (weight[i] + row.weight_offset) * (v[i] * inv_rms);
        store<kItems>(weight, row.out + at);
      }
    }
  }
};

template <typename W>
RANKLAB_BOTH W inverse_rms(W squares, int64_t cols, double epsilon) {
  return W{1} / root(squares / static_cast<W>(cols) + static_cast<W>(epsilon));
}

// grad_in = d(norm)(grad_out) + grad_sum (null: nothing is added).
template <typename T>
struct NormGradRow {
  int64_t cols = 0;
  const T* grad_out = nullptr;
  const T* grad_sum = nullptr;
  const T* sum = nullptr;
  const T* weight = nullptr;
  T* grad_in = nullptr;
  Wide<T> weight_offset = 0;
};

// Processes several rows and accumulates its part of the weight's gradient, which end() writes to `part` [cols]: the
// sum over the rows of one team, always in the same order.
template <typename T, int kItems, int kPacks>
struct NormGradLane {
  using W = Wide<T>;
  using Columns = NormLane<T, kItems, kPacks>;
  W weighted[kItems * kPacks], x[kItems * kPacks], grad_weight[kItems * kPacks];

  static RANKLAB_BOTH bool fits(int64_t cols, Share s) { return cols <= Columns::span(s); }

  RANKLAB_BOTH void begin(int64_t cols, Share s, W* part) {
    RANKLAB_UNROLL
    for (int i = 0; i < kItems * kPacks; ++i) grad_weight[i] = 0;
    if (fits(cols, s)) return;
    for (int64_t at = s.lane * kItems; at < cols; at += s.lanes * kItems) {
      for (int i = 0; i < kItems; ++i) part[at + i] = 0;
    }
  }

  // Reads a pack into `weighted` and `x`, and the output's gradient into `g`.
  RANKLAB_BOTH void read(const NormGradRow<T>& row, int64_t at, int pack, W* g) {
    W weight[kItems];
    load<kItems>(row.grad_out + at, g);
    load<kItems>(row.sum + at, x + pack * kItems);
    load<kItems>(row.weight + at, weight);
    RANKLAB_UNROLL
    for (int i = 0; i < kItems; ++i) weighted[pack * kItems + i] = g[i] * (weight[i] + row.weight_offset);
  }

  // The dot product of grad_out * weight with x.
  RANKLAB_BOTH W product(const NormGradRow<T>& row, Share s, W inv_rms, W* part) {
    W total = 0;
    const bool whole = fits(row.cols, s);
    for (int64_t first = 0; first < row.cols; first += Columns::span(s)) {
      RANKLAB_UNROLL
      for (int p = 0; p < kPacks; ++p) {
        const int64_t at = Columns::column(s, first, p);
        if (at >= row.cols) continue;
        W g[kItems];
        read(row, at, p, g);
        RANKLAB_UNROLL
        for (int i = 0; i < kItems; ++i) {
          const int k = p * kItems + i;
          const W one = g[i] * x[k] * inv_rms;
          total += weighted[k] * x[k];
          if (whole) {
            grad_weight[k] += one;
          } else {
            part[at + i] += one;
          }
        }
      }
    }
    return total;
  }

  RANKLAB_BOTH void write(const NormGradRow<T>& row, Share s, W inv_rms, W product_of_row) {
    const W projection = product_of_row * inv_rms * inv_rms / static_cast<W>(row.cols);
    for (int64_t first = 0; first < row.cols; first += Columns::span(s)) {
      RANKLAB_UNROLL
      for (int p = 0; p < kPacks; ++p) {
        const int64_t at = Columns::column(s, first, p);
        if (at >= row.cols) continue;
        W d[kItems];
        if (!fits(row.cols, s)) read(row, at, p, d);
        RANKLAB_UNROLL
        for (int i = 0; i < kItems; ++i) d[i] = 0;
        if (row.grad_sum != nullptr) load<kItems>(row.grad_sum + at, d);
        RANKLAB_UNROLL
        for (int i = 0; i < kItems; ++i) {
          const int k = p * kItems + i;
          d[i] += inv_rms * (weighted[k] - x[k] * projection);
        }
        store<kItems>(d, row.grad_in + at);
      }
    }
  }

  RANKLAB_BOTH void end(int64_t cols, Share s, W* part) const {
    if (!fits(cols, s)) return;
    RANKLAB_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      const int64_t at = Columns::column(s, 0, p);
      if (at >= cols) continue;
      RANKLAB_UNROLL
      for (int i = 0; i < kItems; ++i) part[at + i] = grad_weight[p * kItems + i];
    }
  }
};

// Rows of `cols` elements in groups: row r is row r % per_group of group r / per_group, which begins at (r / per_group)
// * group_stride. The first `first_kind` rows of a group are multiplied by the first weight, the others by the second.
struct NormRows {
  int64_t rows = 0, cols = 0;
  int64_t per_group = 1, group_stride = 0, first_kind = 1;

  RANKLAB_BOTH int64_t offset(int64_t row) const {
    return quotient(row, per_group) * group_stride + remainder_of(row, per_group) * cols;
  }
  RANKLAB_BOTH bool is_first_kind(int64_t row) const { return remainder_of(row, per_group) < first_kind; }
};
inline NormRows plain_rows(int64_t rows, int64_t cols) { return {rows, cols, 1, cols, 1}; }

template <typename T>
struct NormTask {
  NormRows rows;
  double epsilon = 0, weight_offset = 0;
  const T* x = nullptr;
  const T* branch = nullptr;                 // null: nothing is added, and sum is not written
  const T* weights[2] = {nullptr, nullptr};  // for the first kind of rows and for the others
  T* sum = nullptr;
  T* out = nullptr;
  Wide<T>* inv_rms = nullptr;  // one per row
};
template <typename T>
struct NormGradTask {
  NormRows rows;
  double weight_offset = 0;
  const T* grad_out = nullptr;
  const T* grad_sum = nullptr;  // null: nothing is added
  const T* sum = nullptr;
  const T* weight = nullptr;
  const Wide<T>* inv_rms = nullptr;  // that of row r is at r / per_group * inv_stride + r % per_group
  int64_t inv_stride = 1;
  T* grad_in = nullptr;
  T* grad_weight = nullptr;
  Wide<T>* parts = nullptr;  // [kNormParts, cols], scratch
};
constexpr int64_t kNormParts = 512;

template <typename T>
RANKLAB_BOTH NormRow<T> row_of(const NormTask<T>& task, int64_t row) {
  const int64_t at = task.rows.offset(row);
  return {task.rows.cols,
          task.x + at,
          task.branch != nullptr ? task.branch + at : nullptr,
          task.rows.is_first_kind(row) ? task.weights[0] : task.weights[1],
          task.sum != nullptr ? task.sum + at : nullptr,
          task.out + at,
          static_cast<Wide<T>>(task.weight_offset)};
}

template <typename T>
RANKLAB_BOTH NormGradRow<T> row_of(const NormGradTask<T>& task, int64_t row) {
  const int64_t at = task.rows.offset(row);
  return {task.rows.cols,
          task.grad_out + at,
          task.grad_sum != nullptr ? task.grad_sum + at : nullptr,
          task.sum + at,
          task.weight,
          task.grad_in + at,
          static_cast<Wide<T>>(task.weight_offset)};
}

template <typename T>
RANKLAB_BOTH Wide<T> inv_rms_of(const NormGradTask<T>& task, int64_t row) {
  return task.inv_rms[quotient(row, task.rows.per_group) * task.inv_stride + remainder_of(row, task.rows.per_group)];
}

}  // namespace ranklab::rows
