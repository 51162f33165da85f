// `ranklab parity --types`: what the types of a layout's tensors show to be wrong, from a step on shapes. Thread rule:
// main thread.
#pragma once
#include "cli/config/config_options.h"
#include "cli/parity/parity_request.h"

namespace ranklab {

// Prints; returns the exit code.
int run_types(const ConfigOptions& options, const ParityRequest& request);

}  // namespace ranklab
