// `ranklab data batch --step N`: prints the tokens that a run with these settings trains on in a step, or the tokens of
// batch N of each validation, by rank, microbatch and sequence, with their positions in the data. It opens the data and
// draws the batch as the run does (core/runtime/training_data.h). Thread rule: one thread.
#pragma once
#include "cli/config/config_options.h"

namespace ranklab {

struct DataBatchOptions {
  explicit DataBatchOptions(CommandLine& app) : settings(app) {}
  ConfigOptions settings;
  int64_t step = 0;  // for a validation, the number of its global batch
  bool validation = false;
  int rank = -1;  // -1: all
  bool json = false;
};

// Returns the exit code.
int print_data_batch(const DataBatchOptions& options);

}  // namespace ranklab
