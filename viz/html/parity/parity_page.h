// A parity map as one HTML file: the rows of a layer open and close, each cell tells its numbers to a pointer and to
// the keyboard, light and dark, on paper. Needs no network. Cost: about 100 bytes a cell. Thread rule: pure.
#pragma once
#include <string>

#include "viz/model/parity/parity_map.h"

namespace ranklab::viz {

std::string parity_page(const ParityMap& map);

}  // namespace ranklab::viz
