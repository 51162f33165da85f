#include "viz/model/curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "viz/model/run/metric_lines.h"

namespace ranklab::viz {
namespace {

// The values of one curve by step and rank.
using Values = std::map<int, std::map<int, double>>;

Curve curve_of(const std::string& name, const std::string& unit, const std::string& source, const Values& values) {
  Curve curve{.name = name, .unit = unit, .source = source, .points = {}, .bad_steps = {}};
  for (const auto& [step, ranks] : values) {
    CurvePoint point{step, 0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    bool bad = false;
    for (const auto& [rank, value] : ranks) {
      bad = bad || !std::isfinite(value);
      point.value += value / static_cast<double>(ranks.size());
      point.low = std::min(point.low, value);
      point.high = std::max(point.high, value);
    }
    if (bad) {
      curve.bad_steps.push_back(step);
      if (!std::isfinite(point.value)) point.low = point.high = point.value;
    }
    curve.points.push_back(point);
  }
  return curve;
}

}  // namespace

void sort_curves(std::vector<Curve>& list) {
  std::stable_sort(list.begin(), list.end(), [](const Curve& a, const Curve& b) {
    const bool first = a.name == "loss", second = b.name == "loss";
    return first != second ? first : a.name < b.name;
  });
}

double Curve::skew() const {
  double most = 0;
  for (const CurvePoint& point : points) {
    const double spread = point.high - point.low;
    if (std::isfinite(spread) && spread > 0) most = std::max(most, spread / std::max(std::abs(point.value), 1e-300));
  }
  return most;
}

std::vector<Curve> curves(const TraceStore& store) {
  std::map<std::string, Values> counters;
  Values step_ms;
  for (const RankTrace& trace : store.traces()) {
    for (const Event& event : trace.events) {
      if (event.step < 0) continue;
      const std::string& name = trace.names[event.name];
      if (event.kind == EventKind::kCounter && !name.starts_with("memory/"))
        counters[name][event.step][trace.global_rank] = event.value;
      if (event.kind == EventKind::kPhase && name == "step") {
        const int64_t length = end_ns(event, store.clock()) - begin_ns(event, store.clock());
        step_ms[event.step][trace.global_rank] = static_cast<double>(length) / 1e6;
      }
    }
  }
  std::vector<Curve> out;
  for (const auto& [name, values] : counters) out.push_back(curve_of(name, "", "measured", values));
  if (!step_ms.empty()) {
    const char* source = store.clock() == TraceClock::kVirtual ? "model" : "measured";
    out.push_back(curve_of("step time", "ms", source, step_ms));
  }
  sort_curves(out);
  return out;
}

std::vector<Curve> read_metrics(const std::string& path) { return read_metric_lines(path).curves; }

std::string metrics_path(const std::string& trace_path) {
  const std::filesystem::path path = std::filesystem::path(trace_path).parent_path() / "metrics.jsonl";
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? path.string() : "";
}

std::vector<Curve> all_curves(const TraceStore& store) {
  const std::string path = metrics_path(store.source());
  std::vector<Curve> out = path.empty() ? std::vector<Curve>() : read_metrics(path);
  for (Curve& curve : curves(store)) {
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const Curve& other) { return other.name == curve.name; });
    if (!known) out.push_back(std::move(curve));
  }
  sort_curves(out);
  return out;
}

Curve in_shown_unit(Curve curve) {
  const double times = curve.unit == "share" ? 100 : curve.unit == "bytes" ? 1.0 / (1 << 20) : 1;
  if (times == 1) return curve;
  curve.unit = curve.unit == "share" ? "%" : "MiB";
  for (CurvePoint& point : curve.points)
    for (double* value : {&point.value, &point.low, &point.high}) *value *= times;
  return curve;
}

std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, double span) {
  std::vector<CurvePoint> out = points;
  if (span <= 1) return out;
  const double alpha = 2 / (span + 1);
  bool any = false;
  double average = 0;
  for (CurvePoint& point : out) {
    if (!std::isfinite(point.value)) continue;
    average = any ? average + alpha * (point.value - average) : point.value;
    any = true;
    point.value = average;
  }
  return out;
}

std::pair<double, double> axis_limits(double low, double high) {
  if (low == 0 && high == 0) return {-1, 1};
  const double least = std::max(std::abs(low), std::abs(high)) * 0.02;
  const double pad = std::max((high - low) * 0.08, (least - (high - low)) / 2);
  return {low - pad, high + pad};
}

}  // namespace ranklab::viz
