// `ranklab zero map`: shows which rank owns which part of each parameter, as computed by the optimizers on meta
// tensors. Thread rule: main thread.
#pragma once
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

struct ZeroMapRequest {
  std::string layout_note = {};  // printed after the layout
  bool json = false;
  bool all = false;  // show every owner, however many there are
};

// Prints the map. RETURNS: the exit code.
int run_zero_map(const RunPlan& plan, const ZeroMapRequest& request);

}  // namespace ranklab
