#include "core/optim/lr_decay.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.h"

namespace ranklab {

double cosine_left(double ratio) { return 0.5 * (1.0 + std::cos(std::numbers::pi * ratio)); }
double linear_left(double ratio) { return 1.0 - ratio; }
double halving_left(double ratio) { return 2.0 * std::pow(0.5, ratio) - 1.0; }
double minus_sqrt_left(double ratio) { return 1.0 - std::sqrt(ratio); }

double wsd_left(WsdDecay shape, double step, double end, double decay_steps) {
  const double begin = end - decay_steps;
  if (step <= begin) return 1.0;
  const double ratio = (step - begin) / decay_steps;
  switch (shape) {
    case WsdDecay::kExponential:
      return halving_left(ratio);
    case WsdDecay::kLinear:
      return linear_left(ratio);
    case WsdDecay::kCosine:
      return cosine_left(ratio);
    case WsdDecay::kMinusSqrt:
      return minus_sqrt_left(ratio);
  }
  throw Error(ErrorKind::kInternal, {.where = "lr schedule", .what = "no such decay of WSD"});
}

double inverse_sqrt_lr(double max_lr, double min_lr, double step, double warmup) {
  return std::max(min_lr, max_lr * std::sqrt(std::max(warmup, 1.0)) / std::sqrt(std::max(step, 1.0)));
}

double exponential_lr(double max_lr, double min_lr, double ratio) { return max_lr * std::pow(min_lr / max_lr, ratio); }

}  // namespace ranklab
