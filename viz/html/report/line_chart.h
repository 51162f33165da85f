// Curves over steps as an inline SVG with axes: one line per curve, with a band from minimum to maximum if points stand
// for several steps or ranks, and a mark where values were not finite. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/curves.h"

namespace ranklab::viz {

struct ChartLine {
  const Curve* curve = nullptr;
  std::string name;       // in the legend; "" if there is only one line
  std::string css_class;  // "a", "b", "more"
};

// RETURNS: "" if there are no lines.
std::string line_chart(const std::string& title, const std::string& unit, const std::vector<ChartLine>& lines);

}  // namespace ranklab::viz
