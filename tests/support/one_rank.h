// The runs on one rank with which layouts are compared. Each is trained only once: layouts with the same model,
// settings and microbatches share it. Thread rule: main thread.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/training_record.h"

namespace ranklab {

class OneRankRuns {
 public:
  // `data`: null for the data of the settings.
  explicit OneRankRuns(std::shared_ptr<DataProvider> data) : data_(std::move(data)) {}
  // The record of one rank that trains as `config` says. `model` distinguishes models that differ in something that is
  // not a setting.
  const TrainingRecord& of(const TrainConfig& config, const std::string& model = "");
  size_t trained() const { return runs_.size(); }

 private:
  std::shared_ptr<DataProvider> data_;
  std::map<std::string, TrainingRecord> runs_;
};

}  // namespace ranklab
