// Folds modules that a policy treats alike into one line: "layers.0-3.mlp.experts.0-7.gate_up". Torch-free. Cost:
// n log n. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/precision/precision_policy.h"

namespace ranklab {

struct ModuleGroup {
  std::string modules;                     // with ranges instead of numbers
  const ModulePrecision* first = nullptr;  // the first of them; all are equal except for the name
  int64_t count = 0;
};

// Ordered by the first module of each group. The result points into `modules`.
std::vector<ModuleGroup> fold_modules(std::span<const ModulePrecision> modules);

// {0, 1, 2, 3, 5} as "0-3,5". REQUIRES: ascending.
std::string ranges_text(std::span<const int64_t> numbers);

}  // namespace ranklab
