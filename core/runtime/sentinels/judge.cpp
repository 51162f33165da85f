#include "core/runtime/sentinels/judge.h"

#include <algorithm>

namespace ranklab {

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
