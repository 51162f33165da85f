#include "core/parity/adamw_apart.h"

#include <cmath>

#include "core/config/lr_choice.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor step_of(const AdamMoments& moments, const TrainConfig& c, double lr, int64_t updates) {
  const auto t = static_cast<double>(updates);
  const double mean_left = 1 - std::pow(c.adam_beta1, t), square_left = 1 - std::pow(c.adam_beta2, t);
  return moments.mean * (lr / mean_left) / ((moments.square / square_left).sqrt() + c.adam_eps);
}

}  // namespace

at::Tensor adamw_apart(const AdamMoments& a, const AdamMoments& b, const TrainConfig& config, int64_t step) {
  // Corrections for the zeros that moments begin with are largest in the first update.
  const double lr = config.precision.fp16 ? config.lr : lr_schedule_of(config).at(step);
  const int64_t updates = config.precision.fp16 ? 1 : step + 1;
  return (step_of(a, config, lr, updates) - step_of(b, config, lr, updates)).abs().nan_to_num(0, 0, 0);
}

}  // namespace ranklab
