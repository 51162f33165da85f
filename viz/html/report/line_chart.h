// Curves over steps as an inline SVG with axes: a line for each, with a band from minimum to maximum where points stand
// for several steps or ranks, and a mark where values were not finite. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/curves.h"

namespace ranklab::viz {

struct ChartLine {
  const Curve* curve = nullptr;
  std::string name;       // in the legend; "" where there is one line
  std::string css_class;  // "a", "b", "more"
};

// "" without lines.
std::string line_chart(const std::string& title, const std::string& unit, const std::vector<ChartLine>& lines);

}  // namespace ranklab::viz
