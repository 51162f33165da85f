// Compares measured values with the bounds of their rows. Torch-free. Thread rule: its rank's thread; ranks that are
// given the same reports decide alike.
#pragma once
#include <map>
#include <string>

#include "core/runtime/sentinels/report.h"

namespace ranklab {

class SentinelJudge {
 public:
  explicit SentinelJudge(SentinelRules rules) : rules_(std::move(rules)) {}
  // Drops the values that the run does not measure, and adds the alarms.
  void judge(SentinelReport& report);
  // Saves and restores the number of consecutive measurements beyond the stop bounds: "beyond_stop/TAG".
  void keep(std::map<std::string, double>& values) const;
  void go_on_from(const std::map<std::string, double>& values);

 private:
  struct State {
    SentinelLevel level = SentinelLevel::kNone;
    int beyond_stop = 0;  // number of consecutive measurements
  };
  SentinelRules rules_;
  std::map<std::string, State> states_;  // by tag
};

}  // namespace ranklab
