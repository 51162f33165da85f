// Compute time by kind of kernel, as --json prints it: all of compute except waits for launches. Thread rule: pure.
#pragma once
#include <nlohmann/json.hpp>

#include "core/plan/step_time.h"

namespace ranklab {

inline nlohmann::ordered_json kernels_json(const StepTime& time) {
  nlohmann::ordered_json json;
  for (size_t kind = 0; kind < kKernelKindNames.size(); ++kind)
    json[kKernelKindNames[kind]] = time.kernel_ns[kind] * 1e-6;
  return json;
}

}  // namespace ranklab
