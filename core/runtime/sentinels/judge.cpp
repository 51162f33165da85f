#include "core/runtime/sentinels/judge.h"

namespace ranklab {
namespace {

const std::string kBeyondStop = "beyond_stop/";

}  // namespace

void SentinelJudge::keep(std::map<std::string, double>& values) const {
  for (const auto& [tag, state] : states_)
    if (state.beyond_stop > 0) values[kBeyondStop + tag] = state.beyond_stop;
}

void SentinelJudge::go_on_from(const std::map<std::string, double>& values) {
  constexpr double kMost = 1e9;  // more than the number of a run's steps
  for (const auto& [name, value] : values)
    if (name.starts_with(kBeyondStop) && value > 0 && value < kMost)
      states_[name.substr(kBeyondStop.size())].beyond_stop = static_cast<int>(value);
}

void SentinelJudge::judge(SentinelReport& report) {
  std::erase_if(report.values, [this](const SentinelValue& value) { return !rules_.measures(value.name); });
  for (const SentinelValue& measured : report.values) {
    const SentinelRow& row = rules_.row(measured.name);
    if (row.warn.open() && row.stop.open()) continue;
    State& state = states_[measured.tag];
    state.beyond_stop = row.stop.holds(measured.value) ? 0 : state.beyond_stop + 1;
    const bool stops = state.beyond_stop >= row.in_a_row;
    const bool warns = !row.warn.holds(measured.value) || state.beyond_stop > 0;
    const SentinelLevel level = stops ? SentinelLevel::kStop : warns ? SentinelLevel::kWarn : SentinelLevel::kNone;
    const bool begins = level > state.level;
    state.level = level;
    if (level == SentinelLevel::kNone) continue;
    const SentinelBounds& left = stops || row.warn.holds(measured.value) ? row.stop : row.warn;
    report.alarms.push_back({.name = row.name,
                             .tag = measured.tag,
                             .value = measured.value,
                             .level = level,
                             .bounds = left,
                             .action = row.action,
                             .begins = begins,
                             .detail = measured.detail});
  }
}

}  // namespace ranklab
