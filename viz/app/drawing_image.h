// A drawing (viz/model/svg/drawing.h) as a PNG, two pixels to one of its SVG, in the window's font. Needs no display.
// The same drawing gives the same bytes. Thread rule: one at a time.
#pragma once
#include <string>

#include "viz/model/svg/drawing.h"

namespace ranklab::viz {

// Throws kInvalidArgument where it would be too large, kEnvironment in a build without the visualizer.
std::string png_of(const Drawing& drawing, Ground ground);

}  // namespace ranklab::viz
