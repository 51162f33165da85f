// What the sentinels of a step measured, and those that fired. Equal on every rank. Torch-free. Thread rule: plain
// data.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/settings/sentinel_rules.h"

namespace ranklab {

struct SentinelValue {
  const char* name = "";  // of the row (core/config/settings/sentinel_rules.h)
  std::string tag;        // "Gradients/block_3/norm"
  double value = 0;
  std::string detail = {};  // what the number is about, in words; most have none
};

struct SentinelAlarm {
  std::string name;  // "loss_spike"
  std::string tag;
  double value = 0;
  SentinelLevel level = SentinelLevel::kWarn;
  SentinelBounds bounds;  // that the value has left
  SentinelAction action = SentinelAction::kWarn;
  bool begins = false;  // it did not fire, or not at this level, when it was last measured
  std::string detail = {};

  // "loss_spike: Health/loss_spike_ratio is 12.3, above 3", and behind a colon the detail
  std::string text() const;
};

struct ValueHistogram;  // value_histogram.h

struct SentinelReport {
  std::vector<SentinelValue> values;
  std::vector<SentinelAlarm> alarms;
  std::shared_ptr<const std::vector<ValueHistogram>> histograms;  // null: none in this step

  // Adds the value of a row, with what its tag's {} stands for. A value that is NaN was not measured: nothing is added.
  void add(const char* name, double value, const std::string& place = {}, std::string detail = {});
  const double* find(const std::string& tag) const;  // null: not measured
  // What those that begin to fire ask for; kStop also where a value is beyond its stop bounds.
  bool asks(SentinelAction action) const;
  const SentinelAlarm* stopping() const;  // the first alarm that ends the run, or null
};

}  // namespace ranklab
