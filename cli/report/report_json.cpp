#include "cli/report/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/common/memory_json.h"
#include "cli/trace/table_json.h"
#include "cli/trace/trace_traffic.h"
#include "core/base/utf8.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;
using viz::RunFacts;
using viz::StepFacts;
using viz::TraceStore;

// Text from a file made valid UTF-8, because JSON allows nothing else.
std::string sound(const std::string& text) { return is_utf8(text) ? text : shown_as_utf8(text); }
ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json record_json(const viz::RunRecord& record) {
  ordered_json settings = ordered_json::object(), machine = ordered_json::object();
  for (const viz::RunSetting& one : record.settings)
    settings[sound(one.key)] = {{"value", sound(one.value)}, {"origin", sound(one.origin)}};
  for (const auto& [name, value] : record.machine) machine[sound(name)] = sound(value);
  ordered_json outcome;
  if (record.outcome)
    outcome = {{"steps_done", record.outcome->steps_done},   {"seconds", number(record.outcome->seconds)},
               {"interrupted", record.outcome->interrupted}, {"stopped", sound(record.outcome->stopped)},
               {"error", sound(record.outcome->error)},      {"failed_step", record.outcome->failed_step}};
  return {{"command", sound(record.command)},
          {"again", sound(record.again)},
          {"began", sound(record.began)},
          {"version", sound(record.version)},
          {"layout", sound(record.layout)},
          {"world", sound(record.world)},
          {"profile", sound(record.profile)},
          {"data", sound(record.data)},
          {"loaded", sound(record.loaded)},
          {"ranks", record.ranks},
          {"parameters", record.parameters},
          {"settings", settings},
          {"machine", machine},
          {"outcome", outcome}};
}

ordered_json curve_json(const viz::Curve& curve) {
  ordered_json points = ordered_json::array();
  for (const viz::CurvePoint& point : curve.points) points.push_back({point.step, number(point.value)});
  return {{"values", curve.values},
          {"first", number(curve.first_value)},
          {"last", number(curve.last_value)},
          {"not_finite_steps", curve.bad_steps},
          {"points", points}};
}

ordered_json sentinels_json(const viz::FiredSentinels& sentinels) {
  ordered_json fired = ordered_json::array();
  for (const viz::FiredSentinel& one : sentinels.fired)
    fired.push_back({{"sentinel", sound(one.name)},
                     {"tag", sound(one.tag)},
                     {"first_step", one.first_step},
                     {"last_step", one.last_step},
                     {"times", one.times},
                     {"first_value", number(one.first_value)},
                     {"lowest", number(one.lowest)},
                     {"highest", number(one.highest)},
                     {"bounds", sound(one.bounds)},
                     {"action", sound(one.action)},
                     {"stops", one.stops}});
  return {{"watched", sentinels.watched}, {"steps", sentinels.steps}, {"fired", fired}};
}

ordered_json ranks_json(const TraceStore& store, const StepFacts& facts) {
  ordered_json out = ordered_json::array();
  for (size_t r = 0; r < facts.bubbles.ranks.size(); ++r) {
    ordered_json rank = {{"rank", store.rank(r).global_rank}, {"label", sound(store.trace(r).label)}};
    rank.update(split_json(facts.bubbles.ranks[r].time));
    if (r < facts.memory.size() && !facts.memory[r].samples.empty())
      rank["peak_memory"] = category_bytes_json(facts.memory[r].peak.bytes);
    out.push_back(rank);
  }
  return out;
}

ordered_json zero_json(const viz::ZeroTable& zero) {
  ordered_json buckets = ordered_json::array(), stages = ordered_json::array();
  for (const viz::ZeroBucketRow& row : zero.rows) {
    ordered_json parts = ordered_json::array();
    for (const viz::ZeroCell& cell : row.cells)
      parts.push_back(cell.present ? ordered_json(cell.shard) : ordered_json());
    buckets.push_back({{"label", sound(row.label)},
                       {"elements", row.elements},
                       {"padding", row.padding},
                       {"parts", row.shards},
                       {"part_of_rank", parts}});
  }
  for (int stage = 0; stage <= 3; ++stage) {
    const viz::ZeroBytes bytes = zero.bytes_of_stage(0, stage);
    stages.push_back({{"stage", stage},
                      {"parameters_bytes", bytes.parameters},
                      {"gradients_bytes", bytes.gradients},
                      {"optimizer_bytes", bytes.optimizer}});
  }
  return {{"stage", zero.stage}, {"buckets", buckets}, {"first_rank_at_each_stage", stages}};
}

ordered_json precision_json(const viz::PrecisionTable& table) {
  ordered_json tensors = ordered_json::array();
  const int step = table.steps.empty() ? -1 : table.steps.back();
  for (const viz::TensorSeries& series : table.tensors) {
    const viz::TensorSample* sample = series.at(step);
    if (sample == nullptr) continue;
    tensors.push_back({{"module", sound(series.module)},
                       {"tensor", kTensorRoles[static_cast<size_t>(series.role)]},
                       {"format", sample->format_text()},
                       {"sqnr_db", number(sample->sqnr_db())},
                       {"underflow", sample->underflow_share()},
                       {"saturated", sample->saturated_share()},
                       {"amax", number(sample->amax)}});
  }
  return {{"step", step}, {"tensors", tensors}};
}

ordered_json step_json(const TraceStore& store, const StepFacts& facts) {
  ordered_json layers = ordered_json::array();
  for (const viz::LayerLoad& load : facts.experts.totals) layers.push_back(load_json(load, facts.experts.peers));
  return {{"step", facts.window.step},
          {"clock", store.clock() == TraceClock::kVirtual ? "virtual" : "wall"},
          {"length_ns", facts.window.range.length_ns()},
          {"insights", insights_json(store, facts.insights)},
          {"all", split_json(facts.bubbles.all)},
          {"ranks", ranks_json(store, facts)},
          {"traffic", traffic_json(store, facts.window)},
          {"matrix", matrix_json(facts.traffic)},
          {"zero", facts.zero.empty() ? ordered_json() : zero_json(facts.zero)},
          {"experts", facts.experts.empty() ? ordered_json() : layers},
          {"precision", facts.precision.empty() ? ordered_json() : precision_json(facts.precision)}};
}

}  // namespace

ordered_json report_json(const RunFacts& run) {
  ordered_json glance = ordered_json::object(), curves = ordered_json::object();
  for (const viz::GlanceNumber& one : run.glance)
    glance[one.name] = {{"value", number(one.value)}, {"unit", one.unit}, {"about", one.about}};
  for (const viz::Curve& curve : run.files.curves) curves[sound(curve.name)] = curve_json(curve);
  ordered_json problems = ordered_json::array();
  for (const std::string& problem : run.files.problems) problems.push_back(sound(problem));
  return {{"folder", sound(run.files.folder)},
          {"title", sound(run.files.title())},
          {"problems", problems},
          {"run", run.files.record ? record_json(*run.files.record) : ordered_json()},
          {"glance", glance},
          {"curves", curves},
          {"sentinels", sentinels_json(run.files.sentinels)},
          {"traced_step", run.step ? step_json(*run.files.trace, *run.step) : ordered_json()}};
}

ordered_json differences_json(const RunFacts& a, const RunFacts& b) {
  if (!a.files.record || !b.files.record) return nullptr;
  const auto value = [](const viz::RunSetting* one) {
    return one == nullptr ? ordered_json() : ordered_json(sound(one->value));
  };
  ordered_json out = ordered_json::object();
  for (const viz::SettingDifference& one : viz::setting_differences(*a.files.record, *b.files.record))
    out[sound(one.key)] = {{"a", value(one.a)}, {"b", value(one.b)}};
  return out;
}

}  // namespace ranklab
