// Renders a drawing (viz/model/svg/drawing.h) as a PNG in the window's font, with two pixels per pixel of its SVG.
// Needs no display. The same drawing gives the same bytes. Thread rule: one at a time.
#pragma once
#include <string>

#include "viz/model/svg/drawing.h"

namespace ranklab::viz {

// Throws kInvalidArgument if the image would be too large, kEnvironment in a build without the visualizer.
std::string png_of(const Drawing& drawing, Ground ground);

}  // namespace ranklab::viz
