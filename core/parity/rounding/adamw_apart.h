// How far apart AdamW moves weights by other moments. In its step a gradient is divided by its own size, so that an
// element whose gradient nearly vanishes moves as far as all others, in the direction of rounding: two right runs may
// move it up to twice the learning rate apart. From the moments that both had it is known how far. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/config/train_config.h"

namespace ranklab {

struct AdamMoments {
  at::Tensor mean, square;                                                                   // of gradients; flat, fp64
  c10::ScalarType mean_type = c10::ScalarType::Float, square_type = c10::ScalarType::Float;  // as they are kept
};

// |step by `a` - step by `b`| of each element in a training step, from 0, and what is lost of either step since moments
// are rounded once it is made: a square that fp16 keeps as 0 says nothing of its own. Where a moment is not finite: 0.
// With a loss scale, which skips steps, the most of any update so far.
at::Tensor adamw_apart(const AdamMoments& a, const AdamMoments& b, const TrainConfig& config, int64_t step);

}  // namespace ranklab
