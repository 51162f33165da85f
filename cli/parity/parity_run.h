// `ranklab parity`: compares a layout with its reference, tensor by tensor. Thread rule: main thread.
#pragma once
#include "cli/config/config_options.h"
#include "cli/parity/parity_request.h"

namespace ranklab {

// Prints the result. RETURNS: the exit code.
int run_parity(const ConfigOptions& options, const ParityRequest& request);

}  // namespace ranklab
