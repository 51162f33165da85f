// `ranklab parity --types`: finds errors that show in the types of a layout's tensors, from a step on shapes alone.
// Thread rule: main thread.
#pragma once
#include "cli/config/config_options.h"
#include "cli/parity/parity_request.h"

namespace ranklab {

// Prints the result. RETURNS: the exit code.
int run_types(const ConfigOptions& options, const ParityRequest& request);

}  // namespace ranklab
