// The factor of the loss before backward that keeps small fp16 gradients from becoming zero (Micikevicius et al. 2018,
// arXiv 1710.03740), constant or following overflows as Megatron-LM's and torch's GradScaler do: halved when a gradient
// of any rank is infinite or NaN, a step whose update is left out, doubled after `window` steps without one. Gradients
// are divided by it before they are clipped. All ranks see the same overflows, so their scalers are equal. Torch-free.
// Cost: none. Thread rule: its rank's thread.
#pragma once
#include <cstdint>

namespace ranklab {

struct LossScaleRule {
  bool dynamic = true;
  double initial = 65536;  // the scale itself, when it is not dynamic
  double min = 1;
  double max = 16777216;
  int64_t window = 2000;  // steps without overflow until it doubles
  bool operator==(const LossScaleRule&) const = default;
};

// What a checkpoint keeps of it.
struct LossScaleState {
  double scale = 1;
  int64_t clean_steps = 0;    // without overflow, since it last changed
  int64_t skipped_steps = 0;  // so far
  bool operator==(const LossScaleState&) const = default;
};

class LossScaler {
 public:
  // Throws kInvalidArgument: numbers that make no scale.
  explicit LossScaler(const LossScaleRule& rule);

  double scale() const { return state_.scale; }
  int64_t skipped_steps() const { return state_.skipped_steps; }
  bool overflowed() const { return overflowed_; }  // in the last step
  const LossScaleState& state() const { return state_; }

  // After a step's gradients are there.
  void update(bool overflow);
  // Of a run that goes on. A constant scale stays what it is.
  void restore(const LossScaleState& state);

 private:
  LossScaleRule rule_;
  LossScaleState state_;
  bool overflowed_ = false;
};

}  // namespace ranklab
