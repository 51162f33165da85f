// Finds the positive constants of a model that best fit measurements, with the simplex method of Nelder and Mead (1965)
// over their logarithms. Deterministic. Thread rule: pure.
#pragma once
#include <functional>
#include <span>
#include <vector>

namespace ranklab {

// Minimizes `error` of the constants. REQUIRES: start > 0.
std::vector<double> fit_constants(const std::vector<double>& start,
                                  const std::function<double(std::span<const double>)>& error, int rounds = 2000);

// Quantiles of |predicted / measured - 1|: the median and the 90 % quantile.
struct FitError {
  double half = 0, most = 0;
};
FitError fit_error(std::vector<double> predicted_over_measured);

}  // namespace ranklab
