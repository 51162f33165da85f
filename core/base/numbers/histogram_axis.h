// Maps the bins of histograms (value_histogram.h) to the columns of a picture, from the largest negative magnitude over
// zero to the largest positive one. A column covers one or several bins, and all histograms of a picture share one axis
// so that they can be compared. Values smaller than the axis shows are counted in its innermost columns. Thread rule:
// pure.
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

  // columns of one sign; between the two signs is one column for zero
  int64_t side() const { return (last - first) / per_column + 1; }
  int64_t columns() const { return 2 * side() + 1; }
  // The column of a bin; zero is in the middle one.
  int64_t column(int64_t bin) const {
    const int64_t from_zero = bin - ValueHistogram::kMagnitudes;
    if (from_zero == 0) return side();
    const int64_t magnitude = std::clamp(from_zero < 0 ? -from_zero : from_zero, first, last);
    const int64_t at = side() - 1 - (last - magnitude) / per_column;
    return from_zero < 0 ? side() - 1 - at : side() + 1 + at;
  }
  // The largest absolute value in the outermost column, and the smallest in the innermost.
  double most() const { return ValueHistogram::edge(last); }
  double least() const { return ValueHistogram::edge(last - side() * per_column); }

  std::vector<double> pool(std::span<const double> counts) const {
    std::vector<double> sums(static_cast<size_t>(columns()));
    for (size_t bin = 0; bin < counts.size(); ++bin)
      sums[static_cast<size_t>(column(static_cast<int64_t>(bin)))] += counts[bin];
    return sums;
  }
};

// The axis for histograms that together have these counts. It covers at most `powers` powers of two below the largest
// magnitude.
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
