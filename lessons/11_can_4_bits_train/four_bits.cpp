#include "lessons/11_can_4_bits_train/four_bits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/base/numbers/philox.h"
#include "core/precision/block_scale.h"
#include "core/precision/quantize.h"
#include "core/precision/recipe.h"
#include "core/precision/rounding_error.h"

namespace ranklab::lesson {
namespace {

constexpr int64_t kUnknowns = 32;  // a block of MXFP4
using Vector = std::array<float, kUnknowns>;

std::vector<float> rounded(const std::vector<float>& x, const TensorPrecision& precision, const RoundingNoise* noise) {
  const auto count = static_cast<int64_t>(x.size());
  const MatrixView view{x.data(), 1, count, count};
  const GroupShape groups = group_shape(precision, Along::kColumns, 1, count);
  std::vector<float> amax(static_cast<size_t>(groups.grid_cols(count)));
  group_amax(view, groups, amax);
  const float whole = *std::max_element(amax.begin(), amax.end());
  std::vector<BlockScale> scales;
  for (const float one : amax) scales.push_back(block_scale(precision, one, whole));
  std::vector<float> out(x.size());
  quantize_dequantize(view, groups, scales, *precision.format, noise, out.data());
  return out;
}

double distance(const Vector& w, const Vector& solution) {
  double sum = 0, length = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const auto error = static_cast<double>(w[i] - solution[i]);
    sum += error * error;
    length += static_cast<double>(solution[i]) * static_cast<double>(solution[i]);
  }
  return std::sqrt(sum / length);
}

}  // namespace

std::vector<float> normal_numbers(int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  RandomStream(1, RandomPurpose::kTest, "lesson 11").fill_normal(0, numbers);
  return numbers;
}

QuantizationError blocks_of_normals(const TensorPrecision& precision) {
  constexpr int64_t kNumbers = int64_t{1} << 20;
  const std::vector<float> numbers = normal_numbers(kNumbers);
  return measure_rounding({numbers.data(), 1, kNumbers, kNumbers}, precision);
}

std::vector<double> descend(Rounding rounding, bool rounds) {
  constexpr int kSteps = 4000, kShown = 5;
  constexpr float kRate = 0.004F;
  TensorPrecision precision = mxfp4_recipe().linear.gradient;
  precision.rounding = rounding;
  const RandomStream draws(3, RandomPurpose::kStochasticRounding, "lesson 11");
  const RandomStream samples(2, RandomPurpose::kTest, "samples");
  Vector w{}, solution{}, x{};
  samples.fill_normal(0, solution);
  // The first unknown has a far larger input than the others, as a single channel of a layer often does.
  constexpr float kLoud = 100;
  std::vector<double> shown;
  for (uint64_t step = 0; step < kSteps; ++step) {
    samples.fill_normal((step + 1) * kUnknowns, x);
    x[0] = std::copysign(kLoud, x[0]);
    float error = 0;
    for (size_t i = 0; i < x.size(); ++i) error += x[i] * (w[i] - solution[i]);
    std::vector<float> gradient(x.size());
    for (size_t i = 0; i < x.size(); ++i) gradient[i] = error * x[i];
    const std::array<uint64_t, 1> row = {step};
    const RoundingNoise noise{&draws, row, 0, kUnknowns};
    if (rounds) gradient = rounded(gradient, precision, rounding == Rounding::kStochastic ? &noise : nullptr);
    gradient[0] /= kLoud * kLoud;  // as AdamW does, which scales each gradient by its own size
    for (size_t i = 0; i < w.size(); ++i) w[i] -= kRate * gradient[i];
    if ((step + 1) % (kSteps / kShown) == 0) shown.push_back(distance(w, solution));
  }
  return shown;
}

}  // namespace ranklab::lesson
