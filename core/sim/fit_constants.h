// Positive constants of a model that fit measurements best: Nelder and Mead's simplex (1965) over their logarithms.
// Deterministic. Thread rule: pure.
#pragma once
#include <functional>
#include <span>
#include <vector>

namespace ranklab {

// `error` of constants is to be small. REQUIRES: start > 0.
std::vector<double> fit_constants(const std::vector<double>& start,
                                  const std::function<double(std::span<const double>)>& error, int rounds = 2000);

// Quantiles of |predicted / measured - 1|: the median, and what nine of ten are within.
struct FitError {
  double half = 0, most = 0;
};
FitError fit_error(std::vector<double> predicted_over_measured);

}  // namespace ranklab
