// What the sentinels measured in a step, and which of them fired. Equal on every rank. Torch-free. Thread rule: plain
// data.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/config/settings/sentinel_rules.h"

namespace ranklab {

struct SentinelValue {
  const char* name = "";  // name of the row (core/config/settings/sentinel_rules.h)
  std::string tag;        // "Gradients/block_3/norm"
  double value = 0;
  std::string detail = {};  // what the number refers to, in words; empty for most
};

struct SentinelAlarm {
  std::string name;  // "loss_spike"
  std::string tag;
  double value = 0;
  SentinelLevel level = SentinelLevel::kWarn;
  SentinelBounds bounds;  // the bounds that the value has left
  SentinelAction action = SentinelAction::kWarn;
  bool begins = false;  // whether it did not fire, or not at this level, at its previous measurement
  std::string detail = {};

  // "loss_spike: Health/loss_spike_ratio is 12.3, above 3", followed by a colon and the detail.
  std::string text() const;
};

struct ValueHistogram;  // value_histogram.h

struct SentinelReport {
  std::vector<SentinelValue> values;
  std::vector<SentinelAlarm> alarms;
  std::shared_ptr<const std::vector<ValueHistogram>> histograms;  // null: none in this step

  // Adds the value of a row; `place` replaces {} in its tag. A value of NaN was not measured, and nothing is added.
  void add(const char* name, double value, const std::string& place = {}, std::string detail = {});
  const double* find(const std::string& tag) const;  // null: not measured
  // Whether an alarm that begins to fire requests this action; kStop also if a value is beyond its stop bounds.
  bool asks(SentinelAction action) const;
  const SentinelAlarm* stopping() const;  // the first alarm that ends the run, or null
};

}  // namespace ranklab
