// Tables of quantized tensors: sums by hand, and estimates held to what was counted number by number.
#include "viz/model/tables/precision_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/viz/model/precision_sample.h"
#include "viz/model/tables/requantize.h"

namespace ranklab::viz {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One tensor in step 0 of each rank.
TraceFile one_tensor(const std::vector<std::vector<double>>& numbers) {
  TraceFile file{.ranks = {}, .clock = TraceClock::kVirtual, .world_size = static_cast<int>(numbers.size())};
  for (size_t rank = 0; rank < numbers.size(); ++rank) {
    Tracer tracer(static_cast<int>(rank), "tp");
    tracer.record(samples::phase(tracer, "step", 0, 100));
    tracer.record(samples::precision_moment(tracer, TensorRole::kWeight, "head", 10, 0), numbers[rank]);
    file.ranks.push_back(tracer.take());
  }
  return file;
}

std::vector<double> numbers(double count, double underflow, double amax, std::vector<double> scales) {
  std::vector<double> n(kPrecisionScales);
  n[kPrecisionFormatBits] = 4 * 16 + 3;
  n[kPrecisionGroupRows] = 1;
  n[kPrecisionGroupCols] = 32;
  n[kPrecisionRows] = 1;
  n[kPrecisionCols] = 32 * static_cast<double>(scales.size());
  n[kPrecisionCount] = count;
  n[kPrecisionNonzero] = count - 2;
  n[kPrecisionUnderflow] = underflow;
  n[kPrecisionSaturated] = 1;
  n[kPrecisionSignal] = 1000;
  n[kPrecisionNoise] = 10;
  n[kPrecisionAmax] = amax;
  n[kPrecisionScaleMin] = *std::min_element(scales.begin(), scales.end());
  n[kPrecisionScaleMax] = *std::max_element(scales.begin(), scales.end());
  for (const double scale : scales) n[kPrecisionScaleMean] += scale / static_cast<double>(scales.size());
  for (const double scale : scales)
    n[kPrecisionScaleStd] += std::pow(scale - n[kPrecisionScaleMean], 2) / static_cast<double>(scales.size());
  n[kPrecisionScaleStd] = std::sqrt(n[kPrecisionScaleStd]);
  n[kPrecisionHistogram + 3] = count - 2;
  n[kPrecisionScaleRows] = 1;
  n[kPrecisionScaleCols] = static_cast<double>(scales.size());
  n.insert(n.end(), scales.begin(), scales.end());
  return n;
}

TEST(PrecisionTable, RanksAreAddedUp) {
  const TraceStore store(one_tensor({numbers(10, 4, 3, {1, 3}), numbers(22, 1, 7, {5, 7, 9})}));
  const PrecisionTable table = precision_table(store);
  ASSERT_EQ(table.tensors.size(), 1u);
  const TensorSample& all = *table.find(TensorRole::kWeight, "head")->at(0);
  EXPECT_EQ(all.count, 32);
  EXPECT_EQ(all.underflow_share(), 5.0 / 28) << "zeros of the input do not count";
  EXPECT_EQ(all.saturated_share(), 2.0 / 32);
  EXPECT_NEAR(all.sqnr_db(), 20, 1e-12);
  EXPECT_EQ(all.amax, 7);
  EXPECT_EQ(all.scale_min, 1);
  EXPECT_EQ(all.scale_max, 9);
  EXPECT_NEAR(all.scale_mean, 5, 1e-12);
  EXPECT_NEAR(all.scale_std, std::sqrt(8.0), 1e-12);
  EXPECT_EQ(all.histogram[3], 28);
  EXPECT_THAT(all.scales.values, ElementsAre(1, 3)) << "the first rank's";
  EXPECT_EQ(all.format_text(), "E4M3");
  EXPECT_EQ(all.groups_text(), "1 x 32");
  EXPECT_EQ(precision_table(store, 1).tensors[0].samples[0].count, 22);
}

TEST(PrecisionTable, IsByModuleRoleAndStep) {
  const TraceStore store(samples::precision_run());
  const PrecisionTable table = precision_table(store);
  EXPECT_THAT(table.steps, ElementsAre(0, 4, 8));
  EXPECT_THAT(table.modules, ElementsAre("layers.0.attention.qkv", "layers.0.mlp.down", "layers.1.attention.qkv",
                                         "layers.1.mlp.down"));
  ASSERT_EQ(table.tensors.size(), 12u);
  EXPECT_EQ(table.tensors[2].role, TensorRole::kGradient);
  EXPECT_EQ(table.step_at(7), 4);
  EXPECT_EQ(table.step_at(-1), 0);
  EXPECT_EQ(table.tensors[2].at(5)->step, 4);
  EXPECT_EQ(table.tensors[2].at(5)->count, 2 * 64 * 256);
  const TensorSeries& gradient = *table.find(TensorRole::kGradient, "layers.1.mlp.down");
  EXPECT_LT(gradient.samples[0].underflow_share(), gradient.samples[1].underflow_share());
  EXPECT_EQ(gradient.samples[0].groups_text(), "tensor");
  EXPECT_EQ(table.find(TensorRole::kActivation, "head"), nullptr);
  const std::string text = precision_text(table, 8);
  EXPECT_THAT(text, HasSubstr("step 8"));
  EXPECT_THAT(text, HasSubstr("sampled steps: 0 4 8"));
  EXPECT_THAT(text, HasSubstr("E5M2"));
}

TEST(PrecisionTable, OfOtherTracesIsEmpty) {
  EXPECT_TRUE(precision_table(TraceStore()).empty());
  EXPECT_THAT(precision_text({}, 0), HasSubstr("no quantized tensors"));
}

TEST(PrecisionTable, DamagedNumbersAreBounded) {
  std::vector<double> bad = numbers(10, 4, std::numeric_limits<double>::quiet_NaN(), {1, 2});
  bad[kPrecisionUnderflow] = 1e300;
  bad[kPrecisionNoise] = std::numeric_limits<double>::infinity();
  bad[kPrecisionScaleRows] = 1e9;  // more scales than there are
  const TraceStore store(one_tensor({bad, {1, 2, 3}}));
  const PrecisionTable table = precision_table(store);
  ASSERT_EQ(table.tensors.size(), 1u);
  EXPECT_EQ(table.tensors[0].samples[0].underflow_share(), 1);
  EXPECT_TRUE(std::isnan(table.tensors[0].samples[0].amax));
  EXPECT_TRUE(table.tensors[0].samples[0].scales.values.empty());
}

// N(0, 1e-3) unscaled: E4M3 loses 67.12 %, E5M2 0.61 %; N(0, 200) to E4M3: 2.51 % beyond 448.
TEST(Requantize, EstimatesWhatCountingGives) {
  const auto sample_of = [](double deviation) {
    const samples::DrawnTensor drawn{
        .rows = 512, .cols = 512, .group_rows = 512, .group_cols = 512, .deviation = deviation};
    const TraceStore store(one_tensor({samples::precision_numbers(drawn, "requantize")}));
    return precision_table(store).tensors[0].samples[0];
  };
  const FormatRange &e4m3 = *find_format_range(4, 3), &e5m2 = *find_format_range(5, 2);
  const TensorSample small = sample_of(1e-3), large = sample_of(200);
  EXPECT_NEAR(100 * requantize(small, e4m3, ScaleChoice::kNone).underflow_share, 67.12, 0.5);
  EXPECT_NEAR(100 * requantize(small, e5m2, ScaleChoice::kNone).underflow_share, 0.61, 0.05);
  EXPECT_NEAR(100 * requantize(large, e4m3, ScaleChoice::kNone).saturated_share, 2.51, 0.8);
  // The run scaled by amax: the estimate for the run's own quantization.
  const RequantizeEstimate same = requantize(small, e4m3, ScaleChoice::kAmax);
  EXPECT_NEAR(same.sqnr_db, small.sqnr_db(), 0.5);
  EXPECT_NEAR(same.scale, small.scale_max, 1e-9);
  EXPECT_NEAR(same.underflow_share, small.underflow_share(), 1e-3);
  EXPECT_EQ(same.saturated_share, 0);
}

TEST(Requantize, ScalesAreThoseOfTheirRules) {
  TensorSample sample{.count = 1, .nonzero = 1, .amax = 500, .scale_mean = 0.25};
  sample.histogram[static_cast<size_t>(8 - kPrecisionFirstBin)] = 1;
  const FormatRange& e4m3 = *find_format_range(4, 3);
  EXPECT_EQ(requantize(sample, e4m3, ScaleChoice::kAmax).scale, 500.0 / 448);
  EXPECT_EQ(requantize(sample, e4m3, ScaleChoice::kPowerOfTwo).scale, 2);
  EXPECT_EQ(requantize(sample, e4m3, ScaleChoice::kMx).scale, 1);
  EXPECT_EQ(requantize(sample, e4m3, ScaleChoice::kRun).scale, 0.25);
  EXPECT_EQ(requantize(sample, e4m3, ScaleChoice::kRun).saturated_share, 1);
  EXPECT_EQ(requantize(sample, e4m3, ScaleChoice::kNone).scale, 1);
}

TEST(FormatRange, IsThatOfTheFormats) {
  for (const char* format : {"e4m3", "e5m2", "e2m1"}) {
    const NumberFormat& f = find_number_format(format);
    const FormatRange* range = find_format_range(f.exponent_bits, f.mantissa_bits);
    ASSERT_NE(range, nullptr) << format;
    EXPECT_EQ(range->largest, f.largest()) << format;
    EXPECT_EQ(range->smallest_normal, f.smallest_normal()) << format;
    EXPECT_EQ(range->smallest, f.smallest()) << format;
  }
  EXPECT_EQ(find_format_range(5, 10)->step_at(1), std::ldexp(1, -10));
  EXPECT_EQ(find_format_range(5, 10)->step_at(0), std::ldexp(1, -24));
}

}  // namespace
}  // namespace ranklab::viz
