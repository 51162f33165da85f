// What threads of the GPU's quantizer do, lane by lane on the CPU: codes, scales and values are those of
// core/precision.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cuda/quantize_cases.h"

namespace ranklab {
namespace {

template <typename T>
void run_lanes(const QuantizeTask<T>& task, int lanes) {
  const ScaleMaker maker = maker_of(task);
  for (int64_t group = 0; group < task.groups(); ++group) {
    uint32_t size = 0;
    for (int lane = 0; lane < lanes; ++lane) size = std::max(size, amax_of_lane(task, group, lane, lanes));
    const float amax = OneLane::number(size);
    write_scale(task, maker, group, amax);
    for (int lane = 0; lane < lanes; ++lane) round_of_lane(task, group, make_scale(maker, amax), lane, lanes);
  }
}

template <typename T>
void expect_case(const QuantizeCase& c, const std::vector<T>& x, const Wanted& want, int lanes) {
  QuantizeTask<T> task = task_of<T>(c);
  std::vector<uint8_t> codes(static_cast<size_t>(c.rows * task.code_stride));
  std::vector<uint8_t> scales(want.scales.size() * (task.scale_code == ScaleCode::kFp32 ? 4 : 1));
  std::vector<float> values(x.size());
  task.x = x.data();
  task.tensor_amax = &want.tensor_amax;
  task.codes = codes.data();
  task.scales = scales.data();
  task.values = values.data();
  run_lanes(task, lanes);
  EXPECT_TRUE(same_bits(values, want.values)) << c.name() << ", " << lanes << " lanes";
  EXPECT_TRUE(same_bits(read_back(c, codes, scales, tensor_scale(c.precision, want.tensor_amax)), want.values))
      << c.name() << ", " << lanes << " lanes";
  if (task.grid.code_bits > 4 || c.cols % 2 == 0) return;
  for (int64_t row = 1; row <= c.rows; ++row)
    EXPECT_EQ(codes[static_cast<size_t>(row * task.code_stride - 1)] >> 4, 0) << c.name() << ": no number, no code";
}

TEST(QuantizeBody, HasTheBitsOfTheCpu) {
  for (const QuantizeCase& c : quantize_cases()) {
    const std::vector<float> x = case_numbers(c);
    const Wanted want = wanted(c, x);
    for (const int lanes : {1, 16, 256}) expect_case(c, x, want, lanes);
  }
}

TEST(QuantizeBody, ReadsBf16) {
  for (const QuantizeCase& c : quantize_cases()) {
    const std::vector<float> x = case_numbers(c);
    std::vector<Bf16Bits> narrow(x.size());
    for (size_t i = 0; i < x.size(); ++i) narrow[i] = {static_cast<uint16_t>(std::bit_cast<uint32_t>(x[i]) >> 16)};
    expect_case(c, narrow, wanted(c, x), 32);
  }
}

}  // namespace
}  // namespace ranklab
