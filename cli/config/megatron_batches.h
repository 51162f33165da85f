// Megatron-LM's --step-batch-size-schedule: batch sizes, each with the number of tokens from which it is used
// (StepBatchsizeNumMicroBatchesCalculator of megatron/core/num_microbatches_calculator.py). Torch-free. Thread rule: a
// pure function.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct MegatronBatches {
  std::string sizes;  // in sequences, in the form of --rampup-batch-size
  int64_t last = 0;   // the final size
};

// Converts "0:768 250B:1536", for sequences of `seq_length` tokens. Throws kInvalidArgument.
MegatronBatches megatron_batches(const std::string& text, int64_t seq_length);

}  // namespace ranklab
