// Curves from a file of JSON lines with one object per step, such as metrics.jsonl, of any length. Above a number of
// points, neighbouring points are joined, so that memory does not grow with the steps: a point then has the mean,
// minimum and maximum of its steps. Cost: O(bytes of the file). Thread rule: pure, except for the file.
#pragma once
#include <string>
#include <vector>

#include "viz/model/curves.h"

namespace ranklab::viz {

struct MetricLines {
  std::vector<Curve> curves;  // "loss" first, then by name
  int64_t lines = 0;
  std::string problem = {};  // "line 12 is no JSON": reading ended there; "" if the whole file was read
};

// At most 2 x `most_points` points of each curve; 0: all of them. Each numeric field becomes a curve; null is NaN.
// Throws kIo if the file cannot be opened.
MetricLines read_metric_lines(const std::string& path, size_t most_points = 0);

}  // namespace ranklab::viz
