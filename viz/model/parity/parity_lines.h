// Which lines a drawing of a parity map has, so that a map of a thousand tensors fits on a page: those around the first
// wrong tensor whole, of all others how many of them are right or wrong. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz {

struct ParityLine {
  enum class Kind : uint8_t { kPhase, kTensor, kSummary };
  Kind kind = Kind::kTensor;
  size_t begin = 0, end = 0;  // of the map's rows
  std::string text;           // "step 0, forward", "layers.1.norm output", "32 right tensors"
};

std::vector<ParityLine> parity_lines(const ParityMap& map);
std::string phase_text(const ParityRow& row);  // "step 0, forward"
// A line on a layer: "layers.1: 5 of 8 tensors wrong"; without a name "32 right tensors".
std::string summary_text(const ParityMap& map, size_t begin, size_t end, const std::string& name = "");

}  // namespace ranklab::viz
