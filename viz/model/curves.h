// Values over steps: counters of the engine (loss, activations held), step times from the trace, and, if the run's
// metrics.jsonl is in the trace's folder, everything in it (grad norm, learning rate, tokens/s, MFU ...). Each point
// has the minimum and maximum over ranks, so that diverging replicas are visible. Cost: O(n). Thread rule: pure, except
// for the file.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct CurvePoint {
  int step = 0;
  double value = 0;  // mean over ranks (of the last value in the step); NaN stays NaN
  double low = 0;
  double high = 0;
};

struct Curve {
  std::string name;                // "loss", "step time"
  std::string unit;                // "", "ms", "tokens/s", "share" (of 1), "bytes"
  std::string source;              // "measured", "model"
  std::vector<CurvePoint> points;  // by step
  std::vector<int> bad_steps;      // steps where a value is NaN or infinite, at most 1000 from a file
  // The first and the last value in the whole file, and the number of values, however many were joined into points.
  double first_value = 0, last_value = 0;
  int64_t values = 0;
  double skew() const;  // the largest (high - low) / |value| of all points
};

// "loss" comes first, the others are sorted by name; memory counters are left out (memory_table.h).
std::vector<Curve> curves(const TraceStore& store);
// One curve for each numeric field of metrics.jsonl (run/metric_lines.h); reading ends at a line that is not JSON.
// Throws kIo if the file cannot be opened.
std::vector<Curve> read_metrics(const std::string& path);
void sort_curves(std::vector<Curve>& list);  // loss first, then by name
// The metrics file in the trace's folder, or "" if there is none.
std::string metrics_path(const std::string& trace_path);
// The curves of trace and metrics file; if both have the same curve, that of the file. `span` of smoothed(): 0 leaves
// values unchanged, else an exponential moving average over about that many points.
std::vector<Curve> all_curves(const TraceStore& store);
// Converts to the unit that is displayed: shares to percent, bytes to MiB.
Curve in_shown_unit(Curve curve);
std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, double span);
// The limits of an axis for values from low to high. A curve that changes by less than a percent is drawn as nearly
// constant, and one that is 0 throughout gets a fixed scale.
std::pair<double, double> axis_limits(double low, double high);

}  // namespace ranklab::viz
