// A rank's optimizer that forwards every call: a base class for objects between the optimizer and the engine that
// change some of the calls. Thread rule: its rank's thread.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/runtime/components.h"

namespace ranklab {

class WrappedOptimizer : public RankOptimizer {
 public:
  explicit WrappedOptimizer(std::unique_ptr<RankOptimizer> inner) : inner_(std::move(inner)) {}
  std::vector<OwnedState> owned_state() override { return inner_->owned_state(); }
  std::vector<OwnedState> saved_state() override { return inner_->saved_state(); }
  std::vector<GradBucket> grad_buckets() const override { return inner_->grad_buckets(); }
  int64_t updates() const override { return inner_->updates(); }
  ZeroCounters zero_counters() const override { return inner_->zero_counters(); }
  UpdateWatches* update_watches() override { return inner_->update_watches(); }
  SkippedSteps skipped() const override { return inner_->skipped(); }
  void restored(int64_t updates, const SkippedSteps& skipped) override { inner_->restored(updates, skipped); }
  void settle_parameters() override { inner_->settle_parameters(); }
  void set_step(int64_t step) override { inner_->set_step(step); }
  void begin_step(int64_t num_microbatches) override { inner_->begin_step(num_microbatches); }
  void set_weight_decay(double weight_decay) override { inner_->set_weight_decay(weight_decay); }
  void begin_pass(const GradPass& pass) override { inner_->begin_pass(pass); }
  void end_pass() override { inner_->end_pass(); }
  double finish_step(double lr) override { return inner_->finish_step(lr); }
  bool makes_outer_updates() const override { return inner_->makes_outer_updates(); }
  LossScaler* loss_scaler() override { return inner_->loss_scaler(); }

 protected:
  RankOptimizer& inner() { return *inner_; }

 private:
  std::unique_ptr<RankOptimizer> inner_;
};

// A runtime whose optimizers `wrap` makes of those that `inner` initializes. Called on every rank's thread.
using WrapOptimizer = std::function<std::unique_ptr<RankOptimizer>(const OptimizerRuntime& inner, CausalLm& model,
                                                                   RankContext& ctx, const RunPlan& plan)>;
std::shared_ptr<OptimizerRuntime> wrap_optimizers(std::shared_ptr<OptimizerRuntime> inner, WrapOptimizer wrap);

}  // namespace ranklab
