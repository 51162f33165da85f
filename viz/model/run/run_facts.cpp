#include "viz/model/run/run_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/numbers/median.h"
#include "core/base/text.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

StepFacts facts_of(const TraceStore& store) {
  StepFacts out;
  out.window = shown_window(store);
  out.bubbles = find_bubbles(store, out.window);
  out.insights = find_insights(store, out.window, 5);
  out.mesh = mesh_table(store);
  out.traffic = traffic_matrix(store, out.window);
  out.purposes = traffic_by_purpose(store, out.window, {.gpus_per_node = store.gpus_per_node()});
  out.memory = memory_table(store, store.whole());
  out.zero = zero_table(store, std::max(out.window.step, 0));
  out.experts = expert_table(store, store.whole());
  out.precision = precision_table(store);
  return out;
}

double last_of(const Curve* curve) { return curve != nullptr && curve->values > 0 ? curve->last_value : kUnknown; }

// The first step includes warm-up, so it counts only if it is the only one.
double middle_of(const Curve* curve) {
  std::vector<double> values;
  for (const CurvePoint& point : curve == nullptr ? std::vector<CurvePoint>() : curve->points)
    if (std::isfinite(point.value) && point.value != 0) values.push_back(point.value);
  if (values.size() > 1) values.erase(values.begin());
  return values.empty() ? kUnknown : median(std::move(values));
}

std::vector<GlanceNumber> glance_of(const RunFiles& files, const std::optional<StepFacts>& step) {
  const Curve* loss = files.curve("loss");
  std::vector<GlanceNumber> out = {
      {"steps", "", loss == nullptr ? kUnknown : static_cast<double>(loss->values), "in metrics.jsonl"},
      {"loss of the first step", "", loss == nullptr || loss->values == 0 ? kUnknown : loss->first_value, ""},
      {"loss of the last step", "", last_of(loss), ""},
      {"validation loss, the last one", "", last_of(files.curve("validation_loss")), ""},
      {"step time", "ms", middle_of(files.curve("virtual_step_ms")), "median; virtual, on the hardware profile"},
      {"step time on this machine", "ms", middle_of(files.curve("step_wall_ms")), "median; wall clock"},
      {"tokens/s on this machine", "tokens/s", middle_of(files.curve("tokens_per_s")), "median; wall clock"},
      {"model FLOPs utilization", "share", middle_of(files.curve("mfu")), "median; of the profile's peak"},
      {"exposed communication", "share", middle_of(files.curve("exposed_comm_fraction")),
       "median; of the step's time, transfers that compute did not hide"},
      {"waiting for a peer", "share", middle_of(files.curve("peer_wait_fraction")), "median; of the step's time"}};
  if (!step) return out;
  double peak = 0;
  for (const RankMemory& rank : step->memory) peak = std::max(peak, rank.peak.total());
  out.push_back(
      {"memory of the fullest rank", "bytes", has_memory(step->memory) ? peak : kUnknown, "peak of the traced steps"});
  const bool known = step->bubbles.all.total_ns > 0;  // otherwise a trace of phases
  const auto sent = static_cast<double>(step->traffic.total().of(TrafficLayer::kLogical));
  out.push_back({"traffic of a step", "bytes", known ? sent : kUnknown, "logical bytes that all ranks send"});
  out.push_back({"bubbles", "share", known ? step->bubbles.all.bubble_of_total() : kUnknown,
                 "of all ranks' time in the traced step"});
  return out;
}

}  // namespace

Window shown_window(const TraceStore& store) {
  const auto steps = store.steps();
  return steps.empty() ? store.whole() : *store.step_window(steps[std::min<size_t>(1, steps.size() - 1)].step);
}

RunFacts run_facts(const std::string& path) {
  RunFacts out;
  out.files = read_run(path);
  if (out.files.trace && !out.files.trace->empty()) out.step = facts_of(*out.files.trace);
  out.glance = glance_of(out.files, out.step);
  return out;
}

std::string glance_text(const GlanceNumber& number) {
  if (!std::isfinite(number.value)) return "-";
  if (number.unit == "bytes") return human_bytes(number.value);
  if (number.unit == "share") return format_percent(number.value);
  if (number.unit == "ms") return human_ns(number.value * 1e6);
  if (number.unit == "tokens/s") return human_count(number.value);
  return number.name == "steps" ? strprintf("%.0f", number.value) : strprintf("%.4f", number.value);
}

}  // namespace ranklab::viz
