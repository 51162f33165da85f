#include "core/parity/rounding/adamw_apart.h"

#include <cmath>

#include "core/config/lr_choice.h"
#include "core/parity/epsilon.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The most by which rounding to this type changes a number, subnormal numbers included.
at::Tensor rounding(const at::Tensor& values, c10::ScalarType type) {
  const double smallest = type == at::kDouble ? 0x1p-1022 : type == at::kHalf ? 0x1p-14 : 0x1p-126;
  return values.abs().clamp_min(smallest) * (epsilon_of(type) / 2);
}

// The shortest and the longest step, with sign, from moments that round to the given ones.
struct Step {
  at::Tensor least, most;
};

Step step_of(const AdamMoments& moments, const TrainConfig& c, double lr, int64_t updates) {
  const auto t = static_cast<double>(updates);
  const double mean_left = 1 - std::pow(c.adam_beta1, t), square_left = 1 - std::pow(c.adam_beta2, t);
  const auto by = [&](const at::Tensor& mean, const at::Tensor& square) {
    return mean * (lr / mean_left) / ((square.clamp_min(0) / square_left).sqrt() + c.adam_eps);
  };
  const at::Tensor direction = moments.mean.sign(), of_mean = rounding(moments.mean, moments.mean_type),
                   of_square = rounding(moments.square, moments.square_type);
  return {by(moments.mean - direction * of_mean, moments.square + of_square),
          by(moments.mean + direction * of_mean, moments.square - of_square)};
}

}  // namespace

at::Tensor adamw_apart(const AdamMoments& a, const AdamMoments& b, const TrainConfig& config, int64_t step) {
  // The bias corrections of the moments are largest in the first update.
  const double lr = config.precision.fp16 ? config.lr : lr_schedule_of(config).at(step);
  const int64_t updates = config.precision.fp16 ? 1 : step + 1;
  const Step here = step_of(a, config, lr, updates), there = step_of(b, config, lr, updates);
  return at::maximum((here.most - there.least).abs(), (here.least - there.most).abs()).nan_to_num(0, 0, 0);
}

}  // namespace ranklab
