// A DeviceRounding that runs what the GPU's threads run, in loops on a CPU: for tests of all around the kernels without
// a GPU.
#pragma once
#include <algorithm>

#include "backends/cuda/kernels/operand_body.h"
#include "backends/cuda/kernels/quantize_body.h"

namespace ranklab {

class HostRounding final : public DeviceRounding {
 public:
  int capability() const override { return 0; }
  void group_amax(const DeviceMatrix& m, float* amax) const override {
    constexpr int kLanes = 16;
    for (int64_t group = 0; group < m.groups(); ++group) {
      uint32_t most = 0;
      for (int lane = 0; lane < kLanes; ++lane) most = std::max(most, amax_of_share(m, group, lane, kLanes));
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
  void hash_rows(const DeviceMatrix& m, uint64_t* numbers) const override {
    for (int64_t row = 0; row < m.rows; ++row) numbers[row] = hash_of_row(m, row);
  }

 private:
  template <typename T>
  static void run(const QuantizeTask<T>& task) {
    for (int64_t group = 0; group < task.groups(); ++group) {
      const float amax = OneLane::number(amax_of_lane(task, group, 0, 1));
      write_scale(task, task.maker, group, amax);
      round_of_lane(task, group, make_scale(task.maker, amax), 0, 1);
    }
  }
};

}  // namespace ranklab
