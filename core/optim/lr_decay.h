// The shapes in which a learning rate falls after its warm-up. "Megatron-LM" below means
// OptimizerParamScheduler.get_lr() of megatron/core/optimizer_param_scheduler.py. Thread rule: pure functions.
#pragma once

namespace ranklab {

// In the order of --lr-decay-style and --lr-wsd-decay-style in core/config/settings/lr_fields.cpp.
enum class LrDecay { kConstant, kCosine, kLinear, kInverseSquareRoot, kWsd, kExponential };
enum class WsdDecay { kExponential, kLinear, kCosine, kMinusSqrt };

// Each *_left() function returns the fraction of max_lr - min_lr that is left when the fraction `ratio` of the decay (0
// to 1) is over. cosine: (1 + cos(pi ratio)) / 2. Megatron-LM; arXiv 1608.03983, one period.
double cosine_left(double ratio);
// linear: 1 - ratio. Megatron-LM.
double linear_left(double ratio);
// WSD's exponential decay: 2 * 0.5^ratio - 1, which halves the distance to -1. Megatron-LM.
double halving_left(double ratio);
// WSD's square-root decay: 1 - sqrt(ratio). Megatron-LM; arXiv 2405.18392.
double minus_sqrt_left(double ratio);

// WSD: 1 until the last `decay_steps` of `end`, then one of the four shapes above over these last steps. Megatron-LM;
// arXiv 2404.06395.
double wsd_left(WsdDecay shape, double step, double end, double decay_steps);

// max(min_lr, max_lr * sqrt(warmup / step)), where both counts are taken as at least 1. Megatron-LM (which counts
// samples, so that without a warm-up its rate also depends on the batch size); arXiv 1706.03762, equation 3.
double inverse_sqrt_lr(double max_lr, double min_lr, double step, double warmup);

// max_lr * (min_lr / max_lr)^ratio: the same factor in each step. This is torch.optim.lr_scheduler.ExponentialLR with
// gamma chosen so that min_lr is reached at ratio 1. REQUIRES: both rates are above 0.
double exponential_lr(double max_lr, double min_lr, double ratio);

}  // namespace ranklab
