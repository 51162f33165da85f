// Megatron-LM's --step-batch-size-schedule: the size of a batch from a number of tokens on
// (StepBatchsizeNumMicroBatchesCalculator of megatron/core/num_microbatches_calculator.py). Torch-free. Thread rule: a
// pure function.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct MegatronBatches {
  std::string sizes;  // as --rampup-batch-size takes them, by sequences
  int64_t last = 0;   // the size in the end
};

// "0:768 250B:1536" for sequences of `seq_length` tokens. Throws kInvalidArgument.
MegatronBatches megatron_batches(const std::string& text, int64_t seq_length);

}  // namespace ranklab
