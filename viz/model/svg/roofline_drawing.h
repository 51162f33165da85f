// A roofline (Williams et al. 2009): what a GPU can reach at each intensity, and where the work of a model lies below
// it. Both axes are logarithmic. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/svg/drawing.h"

namespace ranklab::viz {

struct RooflinePicture {
  struct Point {
    std::string name = {};  // "training", "64"
    double intensity = 0;   // FLOP per byte
    double flops = 0;       // a second
    bool in_sweep = false;  // joined with the others of a sweep
  };
  std::string title = {};
  double peak_flops = 0, bytes_per_s = 0;
  std::vector<Point> points = {};
  std::string sweep = {};               // what is swept
  std::vector<std::string> notes = {};  // below
};

// At (x, y), `width` wide. RETURNS: the height that it takes.
double draw_roofline(Drawing& drawing, const RooflinePicture& picture, double x, double y, double width);

}  // namespace ranklab::viz
