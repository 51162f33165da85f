// A drawing of planned layouts by memory and step time. Those that no other layout beats in both are joined by a line,
// numbered, and named below; the others are dots. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/svg/drawing.h"

namespace ranklab::viz {

struct FrontPoint {
  std::string name;
  double step_s = 0, bytes = 0;
  bool on_front = false;
};

// `most_bytes`: the memory limit, drawn as a line. REQUIRES: points.
Drawing front_drawing(const std::string& title, const std::vector<FrontPoint>& points, double most_bytes);

}  // namespace ranklab::viz
