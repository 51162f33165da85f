// Summary statistics of numbers that arrive in pieces: extremes, moments up to the fourth, and the histogram that
// TensorBoard gets (value_histogram.h), in memory that does not grow. NaN and infinities are counted separately and
// excluded from the rest. The moments of each piece are taken around its own mean and then merged exactly (Chan et al.
// 1979, Pebay 2008), so that a mean far from zero loses no precision. Cost: a few passes over each piece, in fp64.
// Thread rule: one thread.
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
  double least = 0, most = 0;  // 0 without finite elements, as are the functions below
  double mean() const { return mean_; }
  double std() const;  // of the whole population, not a sample estimate
  double rms() const;
  double largest() const;  // the largest absolute value
  // The fourth central moment over the squared variance: 3 for a normal distribution, more where a few elements are far
  // out, 0 where all elements are equal.
  double kurtosis() const;
  // The share of elements beyond 10 times the root mean square, as counted by the sentinel residual_outliers. The
  // threshold is rounded up to an edge of the histogram, by at most a quarter.
  double outlier_share() const;
  const std::vector<double>& counts() const { return counts_; }  // indexed by bin of ValueHistogram

 private:
  void join(uint64_t n, double mean, double m2, double m3, double m4);

  uint64_t finite_ = 0;
  double mean_ = 0, m2_ = 0, m3_ = 0, m4_ = 0;  // sums of powers of the distance to the mean
  std::vector<double> counts_ = std::vector<double>(ValueHistogram::kBins);
};

}  // namespace ranklab
