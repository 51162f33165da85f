// The runs on one rank that layouts are compared with, each trained once: layouts of the same model, settings and
// microbatches share it. Thread rule: main thread.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/training_record.h"

namespace ranklab {

class OneRankRuns {
 public:
  // `data` null: the settings' own.
  explicit OneRankRuns(std::shared_ptr<DataProvider> data) : data_(std::move(data)) {}
  // The record of one rank training as `config` says. `model` tells models apart that differ in what is no setting.
  const TrainingRecord& of(const TrainConfig& config, const std::string& model = "");
  size_t trained() const { return runs_.size(); }

 private:
  std::shared_ptr<DataProvider> data_;
  std::map<std::string, TrainingRecord> runs_;
};

}  // namespace ranklab
