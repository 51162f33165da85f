// A DeviceRounding that runs what the GPU's threads run, in loops on a CPU: for tests of all around the kernels without
// a GPU.
#pragma once
#include <algorithm>
#include <vector>

#include "backends/cuda/kernels/cast_body.h"
#include "backends/cuda/kernels/operand_body.h"
#include "backends/cuda/kernels/quantize_body.h"

namespace ranklab {

class HostRounding final : public DeviceRounding {
 public:
  explicit HostRounding(int capability = 0) : capability_(capability) {}
  int capability() const override { return capability_; }
  void group_amax(const DeviceMatrix& m, float* amax) const override {
    const bool packs = in_packs(m) && m.width % kNeighbours == 0;
    for (int64_t group = 0; group < m.groups(); ++group) {
      const uint32_t most = m.width == 1 ? of_column(m, group)
                            : packs      ? of_lanes<kNeighbours>(m, group)
                                         : of_lanes<1>(m, group);
      amax[group] = OneLane::number(most);
    }
  }
  void make_scales(const ScaleMaker& maker, const float* amax, int64_t groups, const float* tensor_amax,
                   float* scales) const override {
    const ScaleMaker own = maker_of_tensor(maker, tensor_amax);
    for (int64_t group = 0; group < groups; ++group) scales[group] = make_scale(own, amax[group]);
  }
  void round(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales, const DeviceNoise& noise,
             const DeviceRounded& out) const override {
    if (casts(m, grid, noise, out)) return cast(m, grid, scales, out);
    for (int64_t i = 0; i < m.rows * m.cols; ++i) round_element(m, grid, scales, noise, out, i / m.cols, i % m.cols);
  }
  void round_at_once(const DeviceMatrix& m, const RoundingGrid& grid, const ScaleMaker& maker, float* scales,
                     float* values) const override {
    if (m.bf16) {
      run(task_at_once(m, static_cast<const Bf16Bits*>(m.x), grid, maker, scales, values));
    } else {
      run(task_at_once(m, static_cast<const float*>(m.x), grid, maker, scales, values));
    }
  }
  bool casts_at_once(const DeviceMatrix& matrix, const RoundingGrid& grid, const ScaleMaker& maker) const override {
    return takes_at_once(matrix, grid, maker);
  }
  void cast_at_once(const DeviceMatrix& m, const RoundingGrid& grid, const ScaleMaker& maker, bool along_columns_first,
                    float* scales, const DeviceRounded& out) const override {
    DeviceMatrix numbers = m;
    std::vector<float> rounded, amax(static_cast<size_t>(m.groups()));
    if (along_columns_first) {
      DeviceMatrix first = m;
      first.height = 1, first.width = m.height;
      rounded.resize(static_cast<size_t>(m.rows * m.cols));
      std::vector<float> of_rows(static_cast<size_t>(first.groups()));
      round_at_once(first, grid, maker, of_rows.data(), rounded.data());
      numbers.x = rounded.data(), numbers.bf16 = false, numbers.stride = m.cols;
    }
    group_amax(numbers, amax.data());
    make_scales(maker, amax.data(), m.groups(), nullptr, scales);
    round(numbers, grid, scales, {}, out);
  }
  void hash_rows(const DeviceMatrix& m, uint64_t* numbers) const override {
    for (int64_t row = 0; row < m.rows; ++row) numbers[row] = hash_of_row(m, row);
  }

 private:
  template <int kItems>
  static uint32_t of_lanes(const DeviceMatrix& m, int64_t group) {
    constexpr int kLanes = 16;
    uint32_t most = 0;
    for (int lane = 0; lane < kLanes; ++lane) most = std::max(most, amax_of_share<kItems>(m, group, lane, kLanes));
    return most;
  }
  static uint32_t of_column(const DeviceMatrix& m, int64_t group) {
    const int64_t first = group / m.cols * m.height, rows = std::min(m.height, m.rows - first), col = group % m.cols;
    if (!in_packs(m)) return amax_of_column(m, first, rows, col);
    uint32_t most[kNeighbours];
    const int64_t pack = col / kNeighbours * kNeighbours;
    if (m.bf16) {
      amax_of_columns_at_once<true>(m, first, rows, pack, most);
    } else {
      amax_of_columns_at_once<false>(m, first, rows, pack, most);
    }
    return most[col - pack];
  }
  static void cast(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales, const DeviceRounded& out) {
    with_cast(m, [&](auto bf16, auto places) {
      const Scales<decltype(places)::value> of{m, scales};
      for (int64_t i = 0; i < m.rows * m.cols; i += kNeighbours) {
        const int64_t row = i / m.cols, col = i % m.cols;
        write(codes_of(stored_pack<decltype(bf16)::value>(m, row, col), grid, of.inverses(row, col)), out, row, col);
      }
    });
  }
  static void write(const EightCodes& codes, const DeviceRounded& out, int64_t row, int64_t col) {
    for (int n = 0; n < kNeighbours; ++n) {
      const auto code = static_cast<uint8_t>(codes.four[n / 4] >> (8 * (n % 4)));
      if (out.codes != nullptr) out.codes[row * out.stride + col + n] = code;
      if (out.turned != nullptr) out.turned[(col + n) * out.turned_stride + row] = code;
    }
  }
  template <typename T>
  static void run(const QuantizeTask<T>& task) {
    for (int64_t group = 0; group < task.groups(); ++group) {
      const float amax = OneLane::number(amax_of_lane(task, group, 0, 1));
      write_scale(task, task.maker, group, amax);
      round_of_lane(task, group, make_scale(task.maker, amax), 0, 1);
    }
  }

  int capability_;
};

// While it lives, operands on the host are rounded by the steps of a GPU.
class StepsOfAGpu {
 public:
  explicit StepsOfAGpu(int capability = 0) : steps_(capability) { use_device_rounding(&steps_, RoundedTensors::kHost); }
  ~StepsOfAGpu() { use_device_rounding(nullptr, RoundedTensors::kHost); }
  StepsOfAGpu(const StepsOfAGpu&) = delete;
  StepsOfAGpu& operator=(const StepsOfAGpu&) = delete;

 private:
  HostRounding steps_;
};

}  // namespace ranklab
