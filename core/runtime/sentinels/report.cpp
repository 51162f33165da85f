#include "core/runtime/sentinels/report.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace ranklab {

std::string SentinelAlarm::text() const {
  const std::string about = detail.empty() ? "" : ": " + detail;
  return strprintf("%s: %s is %.6g, %s", name.c_str(), tag.c_str(), value, bounds.text().c_str()) + about;
}

void SentinelReport::add(const char* name, double value, const std::string& place, std::string detail) {
  if (std::isnan(value)) return;
  std::string tag = find_sentinel(name)->tag;
  if (const size_t hole = tag.find("{}"); hole != std::string::npos) tag.replace(hole, 2, place);
  values.push_back({.name = name, .tag = std::move(tag), .value = value, .detail = std::move(detail)});
}

const double* SentinelReport::find(const std::string& tag) const {
  const auto it = std::ranges::find(values, tag, &SentinelValue::tag);
  return it == values.end() ? nullptr : &it->value;
}

bool SentinelReport::asks(SentinelAction action) const {
  return std::ranges::any_of(alarms, [action](const SentinelAlarm& a) { return a.begins && a.action == action; });
}

const SentinelAlarm* SentinelReport::stopping() const {
  const auto it = std::ranges::find_if(alarms, [](const SentinelAlarm& a) {
    return a.level == SentinelLevel::kStop || a.action == SentinelAction::kStop;
  });
  return it == alarms.end() ? nullptr : &*it;
}

}  // namespace ranklab
