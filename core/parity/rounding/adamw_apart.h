// How far apart AdamW moves weights if the moments differ slightly. AdamW divides a gradient by its own size, so an
// element whose gradient nearly vanishes moves as far as all others, in a direction that rounding decides: two correct
// runs may move it up to twice the learning rate apart. How far exactly follows from the moments that both runs had.
// Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/config/train_config.h"

namespace ranklab {

struct AdamMoments {
  at::Tensor mean, square;  // of gradients; flat, fp64
  // the types in which they are stored
  c10::ScalarType mean_type = c10::ScalarType::Float, square_type = c10::ScalarType::Float;
};

// |step from moments `a` - step from moments `b`| of each element in training step `step`, counted from 0, and
// additionally what is lost in either step because moments are rounded after the update: a square that fp16 stores as
// 0, for example, does not tell its true size. 0 where a moment is not finite. With a loss scale, which skips steps,
// the largest value that any update so far could have had.
at::Tensor adamw_apart(const AdamMoments& a, const AdamMoments& b, const TrainConfig& config, int64_t step);

}  // namespace ranklab
