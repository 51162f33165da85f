// Timeline and traffic matrix as SVG with vector text, for papers and slides. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"
#include "viz/model/svg/svg_writer.h"
#include "viz/model/tables/traffic_matrix.h"

namespace ranklab::viz {

struct SvgOptions {
  TimeRange range;  // empty: the whole trace
  int width = 1200;
  bool axes = true;            // draw the rows of communication, too
  bool critical_path = false;  // outline it
  SvgPlace place = {};
  std::vector<size_t> ranks = {};  // indices of the ranks to draw; empty: all
  float least_pixels = 0.5F;       // narrower blocks are drawn as one
};

std::string timeline_svg(const TraceStore& store, const SvgOptions& options = {});

struct MatrixSvgOptions {
  double cell = 64;  // pixels; cells below 36 have no numbers
  SvgPlace place = {};
};
std::string matrix_svg(const TrafficMatrix& matrix, TrafficLayer layer, const std::string& title,
                       const MatrixSvgOptions& options = {});

}  // namespace ranklab::viz
