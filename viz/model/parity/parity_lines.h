// Selects the lines of a drawing of a parity map, so that a map of a thousand tensors fits on a page: all lines around
// the first wrong tensor, and for all others only how many of them are right or wrong. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz {

struct ParityLine {
  enum class Kind : uint8_t { kPhase, kTensor, kSummary };
  Kind kind = Kind::kTensor;
  size_t begin = 0, end = 0;  // rows of the map
  std::string text;           // "step 0, forward", "layers.1.norm output", "32 right tensors"
};

std::vector<ParityLine> parity_lines(const ParityMap& map);
std::string phase_text(const ParityRow& row);  // "step 0, forward"
// The line for a layer: "layers.1: 5 of 8 tensors wrong"; without a name "32 right tensors".
std::string summary_text(const ParityMap& map, size_t begin, size_t end, const std::string& name = "");

}  // namespace ranklab::viz
