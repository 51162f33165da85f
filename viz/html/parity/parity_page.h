// A parity map as one HTML file: the rows of a layer open and close, each cell shows its numbers for the pointer and
// the keyboard, in light, dark and printed form. Needs no network. Cost: about 100 bytes a cell. Thread rule: pure.
#pragma once
#include <string>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz {

std::string parity_page(const ParityMap& map);

}  // namespace ranklab::viz
