#include "core/optim/lr_schedule.h"

#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

void LrSchedule::validate() const {
  RANKLAB_CHECK(max_lr >= 0 && min_lr >= 0 && min_lr <= max_lr, ErrorKind::kInvalidArgument, .where = "lr schedule",
                .what = "learning rates out of order", .got = strprintf("min-lr %g, lr %g", min_lr, max_lr),
                .want = "0 <= min-lr <= lr", .fix = strprintf("use --min-lr %g or less", max_lr));
  RANKLAB_CHECK(warmup_steps >= 0, ErrorKind::kInvalidArgument, .where = "lr schedule",
                .what = "a negative number of warm-up steps",
                .got = strprintf("%lld", static_cast<long long>(warmup_steps)), .want = "0 or more");
  RANKLAB_CHECK(kind == LrKind::kConstant || decay_steps > warmup_steps, ErrorKind::kInvalidArgument,
                .where = "lr schedule", .what = "the warm-up does not end before the decay does",
                .got = strprintf("warm-up %lld steps, decay %lld steps", static_cast<long long>(warmup_steps),
                                 static_cast<long long>(decay_steps)),
                .want = "warm-up < decay",
                .fix = strprintf("use --lr-warmup-iters %lld or less", static_cast<long long>(decay_steps - 1)));
}

double LrSchedule::at(int64_t completed_steps) const {
  if (completed_steps < warmup_steps) {
    return max_lr * static_cast<double>(completed_steps) / static_cast<double>(warmup_steps);
  }
  if (kind == LrKind::kConstant) return max_lr;
  if (completed_steps >= decay_steps) return min_lr;
  const double ratio =
      static_cast<double>(completed_steps - warmup_steps) / static_cast<double>(decay_steps - warmup_steps);
  return min_lr + (max_lr - min_lr) * 0.5 * (1.0 + std::cos(std::numbers::pi * ratio));
}

}  // namespace ranklab
