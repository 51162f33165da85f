// Timeline and traffic matrix as SVG with vector text, for papers and slides. Thread rule: pure.
#pragma once
#include <optional>
#include <string>

#include "viz/model/trace_store.h"
#include "viz/model/traffic_matrix.h"

namespace ranklab::viz {

struct SvgOptions {
  TimeRange range;  // empty: the whole trace
  int width = 1200;
  bool axes = true;            // rows of communication too
  bool critical_path = false;  // outline it
};

std::string timeline_svg(const TraceStore& store, const SvgOptions& options = {});
std::string matrix_svg(const TrafficMatrix& matrix, TrafficLayer layer, const std::string& title);

}  // namespace ranklab::viz
