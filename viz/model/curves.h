// Values over steps: what the engine records as counters (loss, activations held), step times from the trace, and, when
// the run's metrics.jsonl lies beside the trace, everything in it (grad norm, learning rate, tokens/s, MFU ...). Each
// point has the minimum and maximum over ranks, so replicas that drift apart show. Cost: O(n). Thread rule: pure, but
// for the file.
#pragma once
#include <string>
#include <vector>

#include "viz/model/trace_store.h"

namespace ranklab::viz {

struct CurvePoint {
  int step = 0;
  double value = 0;  // mean over ranks (of the last value in the step); NaN stays NaN
  double low = 0;
  double high = 0;
};

struct Curve {
  std::string name;                // "loss", "step time"
  std::string unit;                // "", "ms", "tokens/s", "%"
  std::string source;              // "measured", "model"
  std::vector<CurvePoint> points;  // by step
  std::vector<int> bad_steps;      // where a value is NaN or infinite
  double skew() const;             // the largest (high - low) / |value|
};

// "loss" first, then by name; memory counters are left out (memory_table.h).
std::vector<Curve> curves(const TraceStore& store);
// One curve a number in the lines of metrics.jsonl; a line that is no JSON ends the reading. Throws kBadFile when the
// file cannot be opened.
std::vector<Curve> read_metrics(const std::string& path);
// The metrics file beside a trace, or "" when there is none.
std::string metrics_path(const std::string& trace_path);
// Both, the metrics' where both have a curve. `span`: 0 draws as it is, else an exponential moving average over about
// that many points.
std::vector<Curve> all_curves(const TraceStore& store);
std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, double span);

}  // namespace ranklab::viz
