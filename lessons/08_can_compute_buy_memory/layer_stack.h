// Forward and backward of a stack of transformer layers on one rank, some of which are recomputed. Thread rule: one run
// at a time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lessons/08_can_compute_buy_memory/exercise.h"

namespace ranklab::lesson {

using Widths = std::vector<int64_t>;  // intermediate size of each layer's MLP

struct StackRun {
  int64_t peak_bytes = 0;  // of activations
  int64_t time_ns = 0;     // virtual
  std::string gradients;   // their bits, for exact comparison
};
// `recompute`: for each layer, whether it is recomputed.
StackRun run_stack(const Widths& widths, const std::vector<bool>& recompute);

// Measures each layer between two other layers.
std::vector<Layer> measure_layers(const Widths& widths);

}  // namespace ranklab::lesson
