// DeviceKernels that run what the GPU's threads run, in loops on a CPU: for tests of all around the kernels without a
// GPU. Rows are shared by 4 lanes that keep 2 packs each, so that both short rows and long ones occur.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cuda/kernels/tasks.h"

namespace ranklab {

class HostKernels final : public DeviceKernels {
 public:
  void norm(const DeviceNorm& n) const override {
    rows::for_number(n.number, [&]<typename T>() { run(rows::norm_task<T>(n)); });
  }
  void norm_recompute(const DeviceNorm& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      const rows::NormTask<T> task = rows::norm_task<T>(n);
      with_items<T>(dense(task), [&]<int kItems>() {
        for (int64_t row = 0; row < task.rows.rows; ++row) {
          for (const rows::Share share : shares()) {
            rows::NormLane<T, kItems, kPacks> lane;
            lane.write(rows::row_of(task, row), share, task.inv_rms[row], true);
          }
        }
      });
    });
  }
  void norm_grad(const DeviceNormGrad& n) const override {
    rows::for_number(n.number, [&]<typename T>() { run(rows::norm_grad_task<T>(n)); });
  }
  void head_norm(const DeviceHeadNorm& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      run(rows::head_norm_task<T>(n));
      copy_values<T>(n.shape, n.qkv, n.out);
    });
  }
  void head_norm_grad(const DeviceHeadNorm& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      run(rows::head_norm_grad_task<T>(n, false));
      run(rows::head_norm_grad_task<T>(n, true));
      copy_values<T>(n.shape, n.grad_out, n.grad_qkv);
    });
  }
  void swiglu(const DeviceSwiglu& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      const rows::SwigluTask<T> t = rows::swiglu_task<T>(n);
      each_pack<T>(t.rows, t.cols, rows::in_packs(t.gate_up, t.out),
                   [&]<int kItems>(int64_t row, int64_t col) { rows::swiglu<kItems>(t, row, col); });
    });
  }
  void swiglu_grad(const DeviceSwiglu& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      const rows::SwigluTask<T> t = rows::swiglu_task<T>(n);
      each_pack<T>(t.rows, t.cols, rows::in_packs(t.gate_up, t.grad_out, t.grad_gate_up),
                   [&]<int kItems>(int64_t row, int64_t col) { rows::swiglu_grad<kItems>(t, row, col); });
    });
  }
  void split_qkv(const DeviceQkv& n) const override { rotate<true>(n); }
  void merge_qkv(const DeviceQkv& n) const override { rotate<false>(n); }
  void merge_softmax(const DeviceMerge& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      const rows::MergeTask<T> t = rows::merge_task<T>(n);
      with_items<T>(rows::in_row_packs<rows::kPack<T>>(t), [&]<int kItems>() {
        for (int64_t i = 0; i < t.all_rows(); ++i) {
          const rows::MergedRow<T> row = rows::merged_row(t, i);
          for (const rows::Share s : shares()) rows::merge_share<kItems>(t, row, s.lane, s.lanes);
        }
      });
    });
  }
  void loss_statistics(const DeviceLoss& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      const rows::LossTask<T> t = rows::loss_task<T>(n);
      with_items<T>(t.width % rows::kPack<T> == 0 && rows::in_packs(t.logits), [&]<int kItems>() {
        for (int64_t row = 0; row < t.rows; ++row) {
          auto all = rows::nothing_yet<rows::Wide<T>>();
          for (const rows::Share s : shares())
            all = rows::joined(all, rows::max_sum_of_share<kItems>(t, row, s.lane, s.lanes));
          rows::write_statistics(t, row, all);
        }
      });
    });
  }
  void loss_grad(const DeviceLoss& n) const override {
    rows::for_number(n.number, [&]<typename T>() {
      const rows::LossTask<T> t = rows::loss_task<T>(n);
      each_pack<T>(t.rows, t.width, rows::in_packs(t.logits, t.grad),
                   [&]<int kItems>(int64_t row, int64_t col) { rows::loss_grad<kItems>(t, row, col); });
    });
  }
  void add_squares(DeviceNumber number, const std::vector<DeviceArray>& arrays, double* parts,
                   double* total) const override {
    double* part = parts;
    for (const rows::SquaresTensor& tensor : rows::squares_list(arrays)) {
      each_chunk(tensor.count, [&](rows::Chunk chunk) {
        *part = 0;
        for (const rows::Share s : shares())
          *part += rows::squares_of_share(tensor, static_cast<rows::Kind>(number), chunk, s.lane, s.lanes);
        *total += *part++;
      });
    }
  }
  void adam(const DeviceAdam& n, const std::vector<DeviceAdamTensor>& tensors) const override {
    const rows::AdamKinds kinds = rows::adam_kinds(n);
    const rows::AdamRule rule = rows::adam_rule(n);
    for (const rows::AdamTensor& tensor : rows::adam_list(tensors)) {
      each_chunk(tensor.count, [&](rows::Chunk chunk) {
        for (const rows::Share s : shares()) {
          if (kinds.weight == rows::Kind::kFp64) {
            rows::adam_of_share<double>(tensor, kinds, rule, chunk, s.lane, s.lanes);
          } else {
            rows::adam_of_share<float>(tensor, kinds, rule, chunk, s.lane, s.lanes);
          }
        }
      });
    }
  }
  void accumulate(const DeviceSum& n) const override {
    rows::for_narrow_number(n.number, [&]<typename T>() {
      const rows::SumTask<T> task = rows::sum_task<T>(n);
      const bool packs = task.count % rows::kPack<float> == 0 && rows::in_packs(task.x, task.sum);
      with_items<float>(packs, [&]<int kItems>() {
        for (int64_t at = 0; at < task.count; at += kItems) rows::accumulate<kItems>(task, at);
      });
    });
  }

 private:
  static constexpr int kLanes = 4, kPacks = 2;

  static std::array<rows::Share, kLanes> shares() { return {{{0, kLanes}, {1, kLanes}, {2, kLanes}, {3, kLanes}}}; }

  template <typename T, typename F>
  static void with_items(bool packs, const F& f) {
    if (packs) return f.template operator()<rows::kPack<T>>();
    f.template operator()<1>();
  }

  template <typename T, typename F>
  static void each_pack(int64_t rows, int64_t cols, bool aligned, const F& f) {
    with_items<T>(aligned && cols % rows::kPack<T> == 0, [&]<int kItems>() {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t col = 0; col < cols; col += kItems) f.template operator()<kItems>(row, col);
      }
    });
  }

  template <typename F>
  static void each_chunk(int64_t count, const F& f) {
    for (int64_t begin = 0; begin < count; begin += rows::kChunk)
      f(rows::Chunk{begin, std::min(begin + rows::kChunk, count)});
  }

  template <typename T>
  static bool dense(const rows::NormTask<T>& t) {
    return t.rows.cols % rows::kPack<T> == 0 && t.rows.group_stride % rows::kPack<T> == 0 &&
           rows::in_packs(t.x, t.branch, t.weights[0], t.weights[1], t.sum, t.out);
  }

  template <typename T>
  static void run(const rows::NormTask<T>& task) {
    with_items<T>(dense(task), [&]<int kItems>() {
      for (int64_t row = 0; row < task.rows.rows; ++row) {
        std::array<rows::NormLane<T, kItems, kPacks>, kLanes> lanes;
        rows::Wide<T> squares = 0;
        for (const rows::Share s : shares())
          squares += lanes[static_cast<size_t>(s.lane)].squares(rows::row_of(task, row), s);
        const rows::Wide<T> inv_rms = rows::inverse_rms(squares, task.rows.cols, task.epsilon);
        task.inv_rms[row] = inv_rms;
        for (const rows::Share s : shares())
          lanes[static_cast<size_t>(s.lane)].write(rows::row_of(task, row), s, inv_rms);
      }
    });
  }

  template <typename T>
  static void run(const rows::NormGradTask<T>& task) {
    const int64_t cols = task.rows.cols, blocks = std::min(task.rows.rows, rows::kNormParts);
    const bool packs = cols % rows::kPack<T> == 0 && task.rows.group_stride % rows::kPack<T> == 0 &&
                       rows::in_packs(task.grad_out, task.grad_sum, task.sum, task.weight, task.grad_in);
    with_items<T>(packs, [&]<int kItems>() {
      for (int64_t block = 0; block < blocks; ++block) run_block<T, kItems>(task, block, blocks);
    });
    for (int64_t col = 0; col < cols; ++col) {
      rows::Wide<T> total = 0;
      for (int64_t block = 0; block < blocks; ++block) total += task.parts[block * cols + col];
      rows::round_to(total, task.grad_weight[col]);
    }
  }

  template <typename T, int kItems>
  static void run_block(const rows::NormGradTask<T>& task, int64_t block, int64_t blocks) {
    const int64_t cols = task.rows.cols;
    rows::Wide<T>* part = task.parts + block * cols;
    std::array<rows::NormGradLane<T, kItems, kPacks>, kLanes> lanes;
    const auto lane = [&](rows::Share s) -> auto& { return lanes[static_cast<size_t>(s.lane)]; };
    for (const rows::Share s : shares()) lane(s).begin(cols, s, part);
    for (int64_t row = block; row < task.rows.rows; row += blocks) {
      const rows::Wide<T> inv_rms = rows::inv_rms_of(task, row);
      rows::Wide<T> product = 0;
      for (const rows::Share s : shares()) product += lane(s).product(rows::row_of(task, row), s, inv_rms, part);
      for (const rows::Share s : shares()) lane(s).write(rows::row_of(task, row), s, inv_rms, product);
    }
    for (const rows::Share s : shares()) lane(s).end(cols, s, part);
  }

  template <typename T>
  static void copy_values(const kernels::HeadNormShape& n, const void* from, void* to) {
    const int64_t width = (n.heads + 2 * n.groups) * n.head_dim, skip = (n.heads + n.groups) * n.head_dim;
    for (int64_t token = 0; token < n.tokens; ++token) {
      const int64_t at = token * width + skip;
      std::memcpy(static_cast<T*>(to) + at, static_cast<const T*>(from) + at,
                  static_cast<size_t>(n.groups * n.head_dim) * sizeof(T));
    }
  }

  template <bool kSplits>
  static void rotate(const DeviceQkv& n) {
    rows::for_number(n.number, [&]<typename T>() {
      const rows::QkvTask<T> t = rows::qkv_task<T>(n);
      with_items<T>(t.head_dim % (2 * rows::kPack<T>) == 0 && rows::in_packs(t.qkv, t.q, t.k, t.v, t.cos, t.sin),
                    [&]<int kItems>() {
                      for (int64_t row = 0; row < t.rows(); ++row) {
                        for (int64_t pack = 0; pack < t.packs(kItems); ++pack)
                          rows::rotate_pack<kSplits, kItems>(t, row, pack);
                      }
                    });
    });
  }
};

// While it lives, tensors on the host take the path of a GPU's with these kernels.
class KernelsOfAGpu {
 public:
  KernelsOfAGpu() { use_device_kernels(KernelDevice::kCpu, &kernels_); }
  ~KernelsOfAGpu() { use_device_kernels(KernelDevice::kCpu, nullptr); }
  KernelsOfAGpu(const KernelsOfAGpu&) = delete;
  KernelsOfAGpu& operator=(const KernelsOfAGpu&) = delete;

 private:
  HostKernels kernels_;
};

}  // namespace ranklab
