// Batch sizes that grow at the start of a run. There are two forms: Megatron-LM's --rampup-batch-size START INCREMENT
// SAMPLES (its RampupBatchsizeNumMicroBatchesCalculator), which goes from START to the whole batch in steps of
// INCREMENT, spread evenly over the first SAMPLES samples; and its --step-batch-size-schedule, a list of arbitrary
// sizes, each with the number of samples from which on it applies. The size of a step follows from the samples consumed
// before it, so a run that resumes needs only its step, and, if it used other batch sizes until then, the number of
// samples it has consumed. Torch-free. Cost: a few operations per size. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct BatchRamp {
  int64_t whole = 1;  // the final batch size
  int64_t start = 0;  // 0: every step uses the whole batch
  int64_t increment = 1;
  int64_t samples = 0;
  struct Size {
    int64_t samples = 0;  // the number of samples from which on this size applies
    int64_t size = 0;
  };
  // If not empty, these are the sizes. Of `start`, `increment` and `samples` only the first then has a meaning: above
  // 0, there are several sizes.
  std::vector<Size> given = {};
  // The first step that this ramp covers, and the samples consumed before it. Not 0 when the run resumed with other
  // batch sizes.
  int64_t first_step = 0;
  int64_t first_sample = 0;

  // "START INCREMENT SAMPLES", separated by spaces or commas, or "0:SIZE SAMPLES:SIZE ...", whose last SIZE is the
  // whole batch; "" means no ramp. Throws kInvalidArgument, with Megatron-LM's conditions, naming the numbers.
  static BatchRamp parse(const std::string& text, int64_t whole);

  bool grows() const { return start > 0; }
  int64_t least() const;    // the smallest size that a step may have
  int64_t divisor() const;  // the greatest common divisor of all sizes
  int64_t size_after(int64_t consumed_samples) const;
  int64_t size_of(int64_t step) const { return size_after(samples_before(step)); }
  // For steps before first_step only the total is known, so these samples are divided evenly among them.
  int64_t samples_before(int64_t step) const;
  // The number of whole steps in `total` samples; leftovers make no step. Inverse of samples_before().
  int64_t steps_in(int64_t total) const;
  std::vector<int64_t> sizes() const;  // in the order in which they apply, from first_step on

 private:
  // Calls visit(size, steps) for each size in order until it returns false. The whole batch has no last step.
  template <typename Visit>
  void each(const Visit& visit) const;
  // The number of samples at which the size next changes after `consumed`; nothing if it does not change any more.
  std::optional<int64_t> end_of_size(int64_t consumed) const;
};

}  // namespace ranklab
