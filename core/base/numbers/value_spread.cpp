#include "core/base/numbers/value_spread.h"

#include <algorithm>

namespace ranklab {
namespace {

constexpr double kOutlierRms = 10;

}  // namespace

void ValueSpread::add(std::span<const double> values) {
  uint64_t n = 0;
  double sum = 0;
  for (const double x : values) {
    nans += std::isnan(x) ? 1 : 0;
    infinities += std::isinf(x) ? 1 : 0;
    if (!std::isfinite(x)) continue;
    zeros += x == 0 ? 1 : 0;
    const bool first = finite_ + n == 0;
    least = first ? x : std::min(least, x);
    most = first ? x : std::max(most, x);
    ++counts_[static_cast<size_t>(ValueHistogram::bin(static_cast<float>(x)))];
    ++n;
    sum += x;
  }
  if (n == 0) return;
  const double mean = sum / static_cast<double>(n);
  double m2 = 0, m3 = 0, m4 = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    const double d = x - mean, square = d * d;
    m2 += square, m3 += square * d, m4 += square * square;
  }
  join(n, mean, m2, m3, m4);
}

void ValueSpread::add(const ValueSpread& other) {
  zeros += other.zeros, nans += other.nans, infinities += other.infinities;
  if (other.finite_ == 0) return;
  least = finite_ == 0 ? other.least : std::min(least, other.least);
  most = finite_ == 0 ? other.most : std::max(most, other.most);
  for (size_t bin = 0; bin < counts_.size(); ++bin) counts_[bin] += other.counts_[bin];
  join(other.finite_, other.mean_, other.m2_, other.m3_, other.m4_);
}

void ValueSpread::join(uint64_t n, double mean, double m2, double m3, double m4) {
  const auto a = static_cast<double>(finite_), b = static_cast<double>(n), all = a + b;
  const double d = mean - mean_, d_all = d / all;
  m4_ += m4 + d * d_all * d_all * d_all * a * b * (a * a - a * b + b * b) +
         6 * d_all * d_all * (a * a * m2 + b * b * m2_) + 4 * d_all * (a * m3 - b * m3_);
  m3_ += m3 + d * d_all * d_all * a * b * (a - b) + 3 * d_all * (a * m2 - b * m2_);
  m2_ += m2 + d * d_all * a * b;
  mean_ += b * d_all;
  finite_ += n;
}

double ValueSpread::std() const { return finite_ == 0 ? 0 : std::sqrt(m2_ / static_cast<double>(finite_)); }
double ValueSpread::rms() const { return std::hypot(mean_, std()); }
double ValueSpread::largest() const { return std::max(std::fabs(least), std::fabs(most)); }
double ValueSpread::kurtosis() const { return m2_ == 0 ? 0 : static_cast<double>(finite_) * m4_ / (m2_ * m2_); }

double ValueSpread::outlier_share() const {
  if (finite_ == 0) return 0;
  double beyond = 0;
  for (int64_t magnitude = 1; magnitude <= ValueHistogram::kMagnitudes; ++magnitude) {
    if (ValueHistogram::edge(magnitude - 1) < kOutlierRms * rms()) continue;
    for (const int64_t bin : {ValueHistogram::kMagnitudes - magnitude, ValueHistogram::kMagnitudes + magnitude})
      beyond += counts_[static_cast<size_t>(bin)];
  }
  return beyond / static_cast<double>(finite_);
}

}  // namespace ranklab
