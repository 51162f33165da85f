// The bins of histograms (value_histogram.h) as the columns of a picture: from the largest negative magnitude over zero
// to the largest positive one, some bins to a column, the same for all histograms of a picture so that they compare.
// What is smaller than the axis shows counts with its innermost columns. Thread rule: pure.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/numbers/value_histogram.h"

namespace ranklab {

struct HistogramAxis {
  int64_t first = 1, last = 1;  // magnitudes (ValueHistogram) of the innermost and outermost columns
  int64_t per_column = 1;

  int64_t side() const { return (last - first) / per_column + 1; }  // columns of a sign; zero has one between them
  int64_t columns() const { return 2 * side() + 1; }
  // The column of a bin; zero has the middle one.
  int64_t column(int64_t bin) const {
    const int64_t from_zero = bin - ValueHistogram::kMagnitudes;
    if (from_zero == 0) return side();
    const int64_t magnitude = std::clamp(from_zero < 0 ? -from_zero : from_zero, first, last);
    const int64_t at = side() - 1 - (last - magnitude) / per_column;
    return from_zero < 0 ? side() - 1 - at : side() + 1 + at;
  }
  // The largest absolute value of the outermost column, and the smallest of the innermost.
  double most() const { return ValueHistogram::edge(last); }
  double least() const { return ValueHistogram::edge(last - side() * per_column); }

  std::vector<double> pool(std::span<const double> counts) const {
    std::vector<double> sums(static_cast<size_t>(columns()));
    for (size_t bin = 0; bin < counts.size(); ++bin)
      sums[static_cast<size_t>(column(static_cast<int64_t>(bin)))] += counts[bin];
    return sums;
  }
};

// That of histograms which together have these counts: from its largest magnitude on at most `powers` powers of two.
inline HistogramAxis histogram_axis(std::span<const double> counts, int64_t powers, int64_t per_column) {
  HistogramAxis axis{.first = ValueHistogram::kMagnitudes, .last = per_column, .per_column = per_column};
  for (size_t bin = 0; bin < counts.size(); ++bin) {
    const int64_t from_zero = static_cast<int64_t>(bin) - ValueHistogram::kMagnitudes;
    if (counts[bin] == 0 || from_zero == 0) continue;
    axis.first = std::min(axis.first, from_zero < 0 ? -from_zero : from_zero);
    axis.last = std::max(axis.last, from_zero < 0 ? -from_zero : from_zero);
  }
  axis.last = (axis.last + per_column - 1) / per_column * per_column;
  axis.first = std::max({axis.first, axis.last - powers * ValueHistogram::kPerPower + 1, int64_t{1}});
  axis.first = std::min(axis.first, axis.last);
  return axis;
}

}  // namespace ranklab
