// A roofline (Williams et al. 2009): the rate that a GPU can reach at each intensity, and the points of a model's work
// below it. Both axes are logarithmic. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/svg/drawing.h"

namespace ranklab::viz {

struct RooflinePicture {
  struct Point {
    std::string name = {};  // "training", "64"
    double intensity = 0;   // FLOP per byte
    double flops = 0;       // FLOP per second
    bool in_sweep = false;  // joined by a line with the other points of a sweep
  };
  std::string title = {};
  double peak_flops = 0, bytes_per_s = 0;
  std::vector<Point> points = {};
  std::string sweep = {};               // what is swept
  std::vector<std::string> notes = {};  // lines below the drawing
};

// Draws at (x, y), `width` wide. RETURNS: the height that it takes.
double draw_roofline(Drawing& drawing, const RooflinePicture& picture, double x, double y, double width);

}  // namespace ranklab::viz
