#include "viz/model/tables/requantize.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ranklab::viz {
namespace {

double scale_of(const TensorSample& sample, const FormatRange& format, ScaleChoice choice) {
  if (choice == ScaleChoice::kNone) return 1;
  if (choice == ScaleChoice::kRun) return sample.scale_mean > 0 ? sample.scale_mean : 1;
  if (!std::isfinite(sample.amax) || sample.amax <= 0) return 1;
  const double exact = sample.amax / format.largest;
  if (choice == ScaleChoice::kPowerOfTwo) return std::exp2(std::ceil(std::log2(exact)));
  if (choice == ScaleChoice::kMx) return std::ldexp(1.0, std::ilogb(sample.amax) - std::ilogb(format.largest));
  return exact;
}

struct Sums {
  double count = 0, underflow = 0, saturated = 0, signal = 0, noise = 0;
};

void add_number(Sums& sums, const FormatRange& format, double scale, double magnitude, double weight) {
  const double scaled = magnitude / scale;
  const bool gone = scaled <= format.smallest / 2, beyond = scaled > format.largest;
  double error = format.step_at(scaled) * scale;
  error = error * error / 12;
  if (gone) error = magnitude * magnitude;
  if (beyond) error = (magnitude - format.largest * scale) * (magnitude - format.largest * scale);
  sums.count += weight;
  sums.underflow += gone ? weight : 0;
  sums.saturated += beyond ? weight : 0;
  sums.signal += weight * magnitude * magnitude;
  sums.noise += weight * error;
}

constexpr int kParts = 64;  // per bin

double low_of(size_t bin) { return std::ldexp(1.0, kPrecisionFirstBin + static_cast<int>(bin)); }

// How the density of values changes within a bin, estimated from its neighbours: the change from the bin's middle to
// its end, relative to the bin's own density.
double slope_of(const MagnitudeHistogram& histogram, size_t bin) {
  if (bin == 0 || bin + 1 == kPrecisionBins) return 0;
  const auto density = [&](size_t which) { return histogram[which] / low_of(which); };
  const double middles = 1.5 * (low_of(bin + 1) - low_of(bin - 1));
  return (density(bin + 1) - density(bin - 1)) / middles * (low_of(bin) / 2) / density(bin);
}

void add_bin(Sums& sums, const FormatRange& format, double scale, const TensorSample& sample, size_t bin) {
  const double low = low_of(bin);
  // No value exceeds the recorded amax.
  const double high = std::isfinite(sample.amax) ? std::clamp(sample.amax, low, 2 * low) : 2 * low;
  const double slope = slope_of(sample.histogram, bin);
  std::array<double, kParts> weights;
  double together = 0;
  for (int part = 0; part < kParts; ++part) {
    const double from_middle = 2 * (part + 0.5) / kParts - 1;
    together += weights[static_cast<size_t>(part)] = std::max(0.0, 1 + slope * from_middle);
  }
  for (int part = 0; part < kParts; ++part)
    add_number(sums, format, scale, low + (high - low) * (part + 0.5) / kParts,
               sample.histogram[bin] * weights[static_cast<size_t>(part)] / together);
}

}  // namespace

std::string_view name(ScaleChoice choice) {
  constexpr std::array<std::string_view, static_cast<size_t>(ScaleChoice::kCount)> kNames = {"amax", "power of two",
                                                                                             "MX", "the run's", "none"};
  return kNames[static_cast<size_t>(choice)];
}

RequantizeEstimate requantize(const TensorSample& sample, const FormatRange& format, ScaleChoice choice) {
  RequantizeEstimate out{.scale = scale_of(sample, format, choice)};
  Sums sums;
  for (size_t bin = 0; bin < kPrecisionBins; ++bin) {
    if (sample.histogram[bin] > 0) add_bin(sums, format, out.scale, sample, bin);
  }
  if (sums.count <= 0) return out;
  out.underflow_share = sums.underflow / sums.count;
  // As a fraction of all numbers, as in the run's own statistics.
  out.saturated_share = sums.saturated / std::max(sample.count, sums.count);
  out.sqnr_db = sums.noise > 0 ? 10 * std::log10(sums.signal / sums.noise) : INFINITY;
  return out;
}

}  // namespace ranklab::viz
