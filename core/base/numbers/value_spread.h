// Summary statistics of numbers that arrive in pieces: extremes, moments up to the fourth, and the histogram that
// TensorBoard gets (value_histogram.h), in memory that does not grow. NaN and infinities are counted separately and
// excluded from the rest. Moments are of each piece around its own mean, then joined exactly (Chan et al. 1979, Pebay
// 2008), so that a mean far from zero costs no digits. Cost: a few passes over each piece, in fp64. Thread rule: one
// thread.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/numbers/value_histogram.h"

namespace ranklab {

class ValueSpread {
 public:
  void add(std::span<const double> values);
  void add(const ValueSpread& other);

  uint64_t elements() const { return finite_ + nans + infinities; }
  uint64_t zeros = 0, nans = 0, infinities = 0;
  double least = 0, most = 0;  // 0 without finite elements, as what follows
  double mean() const { return mean_; }
  double std() const;  // over all elements, not a sample
  double rms() const;
  double largest() const;  // absolute value
  // The fourth moment about the mean over the squared variance: 3 for a normal distribution, more where few elements
  // are far out. 0 where all are equal.
  double kurtosis() const;
  // The share of elements beyond 10 times the root mean square, as the sentinel residual_outliers counts; rounded up,
  // by a quarter at most, to a limit of the histogram.
  double outlier_share() const;
  const std::vector<double>& counts() const { return counts_; }  // by bin of ValueHistogram

 private:
  void join(uint64_t n, double mean, double m2, double m3, double m4);

  uint64_t finite_ = 0;
  double mean_ = 0, m2_ = 0, m3_ = 0, m4_ = 0;  // sums of powers of the distance to the mean
  std::vector<double> counts_ = std::vector<double>(ValueHistogram::kBins);
};

}  // namespace ranklab
