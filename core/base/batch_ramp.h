// Batch sizes that grow at the start of a run (Megatron-LM's --rampup-batch-size START INCREMENT SAMPLES, its
// RampupBatchsizeNumMicroBatchesCalculator): from START to the whole batch in steps of INCREMENT, evenly over the first
// SAMPLES samples; or sizes of any kind, each from a number of samples on (its --step-batch-size-schedule). The size of
// a step follows from the samples before it, so that a run that resumes needs nothing but
// its step, and where its batches were others until then, how many samples they had. Torch-free. Cost: a few operations
// for each size. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct BatchRamp {
  int64_t whole = 1;  // the batch size in the end
  int64_t start = 0;  // 0: every step has the whole batch
  int64_t increment = 1;
  int64_t samples = 0;
  struct Size {
    int64_t samples = 0;  // from here on
    int64_t size = 0;
  };
  std::vector<Size> given = {};  // not empty: these are the sizes, and the three numbers say nothing but that
  // The first step whose size is this ramp's, and the samples before it: a run that resumed with other batch sizes.
  int64_t first_step = 0;
  int64_t first_sample = 0;

  // "START INCREMENT SAMPLES", separated by spaces or commas, or "0:SIZE SAMPLES:SIZE ...", the last of which is the
  // whole batch's; "": no ramp. Throws kInvalidArgument, with Megatron-LM's conditions, naming the numbers.
  static BatchRamp parse(const std::string& text, int64_t whole);

  bool grows() const { return start > 0; }
  int64_t least() const;    // of the sizes that it may have
  int64_t divisor() const;  // of all of them, the greatest
  int64_t size_after(int64_t consumed_samples) const;
  int64_t size_of(int64_t step) const { return size_after(samples_before(step)); }
  // Of steps before first_step only their sum is known: as if all had one size.
  int64_t samples_before(int64_t step) const;
  // Steps that `total` samples make, the last one whole.
  int64_t steps_in(int64_t total) const;
  std::vector<int64_t> sizes() const;  // in their order, from first_step on

 private:
  // Calls visit(size, steps) for each size in turn until it returns false; the whole batch has no end of steps.
  template <typename Visit>
  void each(const Visit& visit) const;
  // The number of samples from which on the size is another than after `consumed`; none: it stays.
  std::optional<int64_t> end_of_size(int64_t consumed) const;
};

}  // namespace ranklab
