// A parity map as a separate drawing on white: a row for each line of parity_lines.h, a column for each rank, and below
// the first wrong row what is known about it. Thread rule: pure.
#pragma once
#include <string>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz {

std::string parity_svg(const ParityMap& map);

}  // namespace ranklab::viz
