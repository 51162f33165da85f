// Values over steps: counters of the engine (loss, activations held), step times from the trace, and, when the run's
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
  std::vector<int> bad_steps;      // steps where a value is NaN or infinite, at most 1000 of a file's
  // The whole file's first and last value, and how many there were, however many points were joined.
  double first_value = 0, last_value = 0;
  int64_t values = 0;
  double skew() const;  // the largest (high - low) / |value|
};

// "loss" first, then by name; memory counters are left out (memory_table.h).
std::vector<Curve> curves(const TraceStore& store);
// One curve for each numeric field of metrics.jsonl (run/metric_lines.h); reading ends at a line that is not JSON.
// Throws kIo when the file cannot be opened.
std::vector<Curve> read_metrics(const std::string& path);
void sort_curves(std::vector<Curve>& list);  // loss first, then by name
// The metrics file in the trace's folder, or "" when there is none.
std::string metrics_path(const std::string& trace_path);
// Both; where both have a curve, the metrics'. `span`: 0 draws values unchanged, else an exponential moving average
// over about that many points.
std::vector<Curve> all_curves(const TraceStore& store);
// In the unit that people read: shares in percent, bytes in MiB.
Curve in_shown_unit(Curve curve);
std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, double span);
// From where to where an axis goes that shows values from low to high. Curves that change by less than a percent are
// drawn as what they are: nearly constant; one that is 0 throughout has no scale of its own.
std::pair<double, double> axis_limits(double low, double high);

}  // namespace ranklab::viz
