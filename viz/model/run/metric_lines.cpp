#include "viz/model/run/metric_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/trace/text_lines.h"

namespace ranklab::viz {
namespace {

constexpr size_t kMostCurves = 256, kMostBadSteps = 1000;  // more: not our metrics file, or too many to look at
constexpr size_t kMostMetricLineBytes = size_t{1} << 20;

class GrowingCurve {
 public:
  explicit GrowingCurve(size_t most) : most_(most == 0 ? std::numeric_limits<size_t>::max() / 2 : most) {}

  void add(int step, double value) {
    if (first_) curve_.first_value = value;
    first_ = false;
    curve_.last_value = value;
    if (!std::isfinite(value) && curve_.bad_steps.size() < kMostBadSteps) curve_.bad_steps.push_back(step);
    // If a step occurs twice, the last occurrence counts.
    if (!parts_.empty() && parts_.back().count == 1 && parts_.back().first == step) {
      parts_.back() = {step, step, value, value, value, 1};
      return;
    }
    ++curve_.values;
    if (!parts_.empty() && parts_.back().count < per_part_) {
      parts_.back().join({step, step, value, value, value, 1});
    } else {
      if (parts_.size() >= 2 * most_) halve();
      parts_.push_back({step, step, value, value, value, 1});
    }
  }
  Curve curve() {
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.first < b.first; });
    for (const Part& part : parts_)
      curve_.points.push_back(
          {part.first + (part.last - part.first) / 2, part.sum / static_cast<double>(part.count), part.low, part.high});
    return std::move(curve_);
  }

 private:
  struct Part {
    int first = 0, last = 0;
    double sum = 0, low = 0, high = 0;
    int64_t count = 0;
    // Values that are not finite do not spoil the mean of the others.
    void join(const Part& other) {
      last = std::max(last, other.last);
      if (!std::isfinite(other.sum)) return;
      if (!std::isfinite(sum)) {
        *this = {first, last, other.sum, other.low, other.high, other.count};
        return;
      }
      sum += other.sum;
      low = std::min(low, other.low);
      high = std::max(high, other.high);
      count += other.count;
    }
  };
  void halve() {
    for (size_t i = 0; i + 1 < parts_.size(); i += 2) {
      parts_[i].join(parts_[i + 1]);
      parts_[i / 2] = parts_[i];
    }
    parts_.resize(parts_.size() / 2);
    per_part_ *= 2;
  }
  size_t most_;
  int64_t per_part_ = 1;
  bool first_ = true;
  std::vector<Part> parts_;
  Curve curve_;
};

std::string unit_of(const std::string& name) {
  if (name == "tokens_per_s") return "tokens/s";
  if (name.ends_with("_ms")) return "ms";
  if (name.ends_with("_bytes")) return "bytes";
  if (name == "tokens") return "tokens";
  if (name == "mfu" || name == "wall_mfu" || name.ends_with("_fraction")) return "share";
  return "";
}

bool is_model(const std::string& name) {
  return name == "mfu" || name == "virtual_step_ms" || name == "exposed_comm_fraction" || name == "peer_wait_fraction";
}

}  // namespace

MetricLines read_metric_lines(const std::string& path, size_t most_points) {
  MetricLines out;
  std::map<std::string, GrowingCurve> curves;
  TextLines lines(path, kMostMetricLineBytes);
  for (std::string_view line; lines.next(line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    ++out.lines;
    const bool has_step = json.is_object() && json.contains("step") && json["step"].is_number_integer();
    const int64_t step = has_step ? json["step"].get<int64_t>() : -1;
    if (step < 0 || step > std::numeric_limits<int>::max()) {
      out.problem =
          "line " + std::to_string(out.lines--) + (json.is_object() ? " has no step" : " is not a JSON object");
      break;
    }
    for (const auto& [key, value] : json.items()) {
      if (key == "step" || !(value.is_number() || value.is_null())) continue;
      auto curve = curves.find(key);
      if (curve == curves.end()) {
        if (curves.size() >= kMostCurves) continue;
        curve = curves.emplace(key, GrowingCurve(most_points)).first;
      }
      // JSON has no NaN, so the writer uses null.
      curve->second.add(static_cast<int>(step),
                        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    }
  }
  if (!lines.damage().empty() && out.problem.empty())
    out.problem = "after line " + std::to_string(out.lines) + ": " + lines.damage();
  for (auto& [name, growing] : curves) {
    Curve& curve = out.curves.emplace_back(growing.curve());
    curve.name = name;
    curve.unit = unit_of(name);
    curve.source = is_model(name) ? "model" : "measured";
  }
  sort_curves(out.curves);
  return out;
}

}  // namespace ranklab::viz
