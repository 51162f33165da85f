// Placeholders for data and optimizer, for commands in which a model only generates text. Thread rule: its rank's
// thread.
#pragma once
#include "core/runtime/components.h"

namespace ranklab {

class NoData : public RankData {
 public:
  Batch train_batch(int64_t step, int64_t microbatch) override;
  bool has_validation() const override { return false; }
  Batch validation_batch(int64_t index, int64_t microbatch) override;
};

class NoOptimizer : public RankOptimizer {
 public:
  void begin_step(int64_t num_microbatches) override;
  void begin_pass(const GradPass& pass) override;
  void end_pass() override;
  double finish_step(double lr) override;
};

}  // namespace ranklab
