// The shapes in which a learning rate comes down after its warm-up. "Megatron-LM" is OptimizerParamScheduler.get_lr()
// of megatron/core/optimizer_param_scheduler.py. Thread rule: pure functions.
#pragma once

namespace ranklab {

// The order of --lr-decay-style and --lr-wsd-decay-style in core/config/settings/lr_fields.cpp.
enum class LrDecay { kConstant, kCosine, kLinear, kInverseSquareRoot, kWsd, kExponential };
enum class WsdDecay { kExponential, kLinear, kCosine, kMinusSqrt };

// The part of max_lr - min_lr that is left when `ratio` of the decay is over (0 to 1).
// cosine: (1 + cos(pi ratio)) / 2. Megatron-LM; arXiv 1608.03983, one period.
double cosine_left(double ratio);
// linear: 1 - ratio. Megatron-LM.
double linear_left(double ratio);
// WSD's exponential decay: 2 * 0.5^ratio - 1, which halves the distance to -1. Megatron-LM.
double halving_left(double ratio);
// WSD's decay by the root: 1 - sqrt(ratio). Megatron-LM; arXiv 2405.18392.
double minus_sqrt_left(double ratio);

// WSD: 1 until the last `decay_steps` of `end`, then one of the four above over those. Megatron-LM; arXiv 2404.06395.
double wsd_left(WsdDecay shape, double step, double end, double decay_steps);

// max(min_lr, max_lr * sqrt(warmup / step)), where both count from 1 at least. Megatron-LM (which counts samples, so
// that without a warm-up its rate also depends on the batch size); arXiv 1706.03762, equation 3.
double inverse_sqrt_lr(double max_lr, double min_lr, double step, double warmup);

// max_lr * (min_lr / max_lr)^ratio: the same factor in each step. torch.optim.lr_scheduler.ExponentialLR, whose gamma
// is chosen so that min_lr is reached at ratio 1. Both rates above 0.
double exponential_lr(double max_lr, double min_lr, double ratio);

}  // namespace ranklab
