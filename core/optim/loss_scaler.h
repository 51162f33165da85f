// Loss scaling: multiplying the loss before backward keeps small fp16 gradients from underflowing (Micikevicius et al.
// 2018, arXiv 1710.03740). The scale is constant, or dynamic as in Megatron-LM and torch's GradScaler: halved when a
// gradient on any rank is infinite or NaN (that step's update is skipped), doubled after `window` steps without
// overflow. Gradients are divided by the scale before they are clipped. All ranks see the same overflows, so their
// scalers stay equal. Torch-free. Cost: none. Thread rule: its rank's thread.
#pragma once
#include <cstdint>

namespace ranklab {

struct LossScaleRule {
  bool dynamic = true;
  double initial = 65536;  // the constant scale if not dynamic
  double min = 1;
  double max = 16777216;
  int64_t window = 2000;  // steps without overflow before the scale doubles
  bool operator==(const LossScaleRule&) const = default;
};

// The steps so far whose update was skipped because of an overflow, and the number of samples in their batches.
struct SkippedSteps {
  int64_t steps = 0;
  int64_t samples = 0;
};

// The state that checkpoints contain.
struct LossScaleState {
  double scale = 1;
  int64_t clean_steps = 0;    // steps without overflow since the scale last changed
  int64_t skipped_steps = 0;  // in the whole run
  bool operator==(const LossScaleState&) const = default;
};

class LossScaler {
 public:
  // Throws kInvalidArgument if the rule's numbers are out of range.
  explicit LossScaler(const LossScaleRule& rule);

  double scale() const { return state_.scale; }
  int64_t skipped_steps() const { return state_.skipped_steps; }
  bool overflowed() const { return overflowed_; }  // in the last step
  const LossScaleState& state() const { return state_; }

  // Call once per step, when its gradients are complete.
  void update(bool overflow);
  // For a resumed run. A constant scale keeps the rule's value.
  void restore(const LossScaleState& state);

 private:
  LossScaleRule rule_;
  LossScaleState state_;
  bool overflowed_ = false;
};

}  // namespace ranklab
