// A run by hand whose tensors are drawn, not trained: two layers, three roles, sampled at steps 0, 4 and 8; the
// gradients shrink from step to step, so that more and more of them are lost. What the events say of a tensor is
// counted here number by number.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/precision/number_format.h"
#include "core/trace/precision_event.h"
#include "tests/viz/model/make_trace.h"

namespace ranklab::viz::samples {

struct DrawnTensor {
  int64_t rows = 64, cols = 256;
  int64_t group_rows = 64, group_cols = 256;
  double deviation = 1;
  bool scaled = true;  // by the largest magnitude of each group
  std::string format = "e4m3";
};

// The array of a precision event.
inline std::vector<double> precision_numbers(const DrawnTensor& t, const std::string& name) {
  const NumberFormat& f = find_number_format(t.format);
  std::vector<float> x(static_cast<size_t>(t.rows * t.cols));
  RandomStream(7, RandomPurpose::kTest, name).fill_normal(0, x);
  for (float& one : x) one = static_cast<float>(one * t.deviation);
  x[3] = 0;
  std::vector<double> n(kPrecisionScales);
  n[kPrecisionFormatBits] = f.exponent_bits * 16 + f.mantissa_bits;
  n[kPrecisionGroupRows] = static_cast<double>(t.group_rows);
  n[kPrecisionGroupCols] = static_cast<double>(t.group_cols);
  n[kPrecisionRows] = static_cast<double>(t.rows);
  n[kPrecisionCols] = static_cast<double>(t.cols);
  n[kPrecisionCount] = static_cast<double>(x.size());
  std::vector<double> scales;
  const int64_t grid_rows = t.rows / t.group_rows, grid_cols = t.cols / t.group_cols;
  for (int64_t group = 0; group < grid_rows * grid_cols; ++group) {
    const int64_t row = group / grid_cols * t.group_rows, col = group % grid_cols * t.group_cols;
    const auto each = [&](const auto& use) {
      for (int64_t i = 0; i < t.group_rows * t.group_cols; ++i)
        use(x[static_cast<size_t>((row + i / t.group_cols) * t.cols + col + i % t.group_cols)]);
    };
    double amax = 0;
    each([&](float value) { amax = std::max(amax, std::abs(static_cast<double>(value))); });
    const double scale = t.scaled ? amax / f.largest() : 1;
    scales.push_back(scale);
    each([&](float value) {
      const double after = decode(f, encode(f, static_cast<float>(value / scale))) * scale;
      if (value == 0) return;
      n[kPrecisionNonzero] += 1;
      n[kPrecisionUnderflow] += after == 0 ? 1 : 0;
      n[kPrecisionSaturated] += std::abs(value / scale) > f.largest() * (1 + 1e-6) ? 1 : 0;
      n[kPrecisionSignal] += static_cast<double>(value) * value;
      n[kPrecisionNoise] += (value - after) * (value - after);
      const int bin = std::clamp(std::ilogb(value) - kPrecisionFirstBin, 0, static_cast<int>(kPrecisionBins) - 1);
      n[kPrecisionHistogram + static_cast<size_t>(bin)] += 1;
    });
    n[kPrecisionAmax] = std::max(n[kPrecisionAmax], amax);
  }
  double mean = 0, squares = 0;
  for (const double scale : scales) mean += scale / static_cast<double>(scales.size());
  for (const double scale : scales) squares += (scale - mean) * (scale - mean) / static_cast<double>(scales.size());
  n[kPrecisionScaleMin] = *std::min_element(scales.begin(), scales.end());
  n[kPrecisionScaleMax] = *std::max_element(scales.begin(), scales.end());
  n[kPrecisionScaleMean] = mean;
  n[kPrecisionScaleStd] = std::sqrt(squares);
  const int64_t shown_rows = std::min<int64_t>(grid_rows, kShownScaleRows),
                shown_cols = std::min<int64_t>(grid_cols, kShownScaleCols);
  n[kPrecisionScaleRows] = static_cast<double>(shown_rows);
  n[kPrecisionScaleCols] = static_cast<double>(shown_cols);
  for (int64_t r = 0; r < shown_rows; ++r) {
    for (int64_t c = 0; c < shown_cols; ++c) n.push_back(scales[static_cast<size_t>(r * grid_cols + c)]);
  }
  return n;
}

inline Event precision_moment(Tracer& tracer, TensorRole role, const std::string& module, int64_t at, int step) {
  Event event;
  event.kind = EventKind::kInstant;
  event.name = tracer.intern(precision_event_name(role, module));
  event.step = step;
  event.virtual_begin_ns = event.virtual_end_ns = at;
  return event;
}

constexpr int kPrecisionSteps = 9, kPrecisionEvery = 4;

inline TraceFile precision_run(int ranks = 2) {
  TraceFile file{.ranks = {}, .clock = TraceClock::kVirtual, .world_size = ranks};
  for (int rank = 0; rank < ranks; ++rank) {
    Tracer tracer(rank, "dp" + std::to_string(rank));
    for (int step = 0; step < kPrecisionSteps; ++step) {
      const int64_t begin = 1000 * step;
      tracer.record(phase(tracer, "step", begin, begin + 900, step));
      if (step % kPrecisionEvery != 0) continue;
      const auto sample = [&](TensorRole role, const std::string& module, const DrawnTensor& drawn) {
        tracer.record(precision_moment(tracer, role, module, begin + 100, step),
                      precision_numbers(drawn, module + std::to_string(rank)));
      };
      for (const char* module :
           {"layers.0.attention.qkv", "layers.0.mlp.down", "layers.1.attention.qkv", "layers.1.mlp.down"}) {
        sample(TensorRole::kActivation, module, {.group_rows = 1, .group_cols = 32});
        sample(TensorRole::kWeight, module, {.group_rows = 32, .group_cols = 32, .deviation = 0.02});
        sample(TensorRole::kGradient, module,
               {.deviation = std::ldexp(1e-2, -step / 2), .scaled = false, .format = "e5m2"});
      }
    }
    file.ranks.push_back(tracer.take());
  }
  return file;
}

}  // namespace ranklab::viz::samples
