#include "core/runtime/before_step.h"

#include <utility>

namespace ranklab {
namespace {

using Look = std::function<void(StepContext&)>;

class LookingSchedule final : public ScheduleStrategy {
 public:
  LookingSchedule(std::unique_ptr<ScheduleStrategy> inner, Look look)
      : inner_(std::move(inner)), look_(std::move(look)) {}
  std::string name() const override { return inner_->name(); }
  StepOutput run_step(StepContext& context) override {
    look_(context);
    return inner_->run_step(context);
  }
  StepOutput run_validation(StepContext& context, int64_t index) override {
    return inner_->run_validation(context, index);
  }
  at::Tensor logits(StepContext& context, const Batch& batch) override { return inner_->logits(context, batch); }

 private:
  std::unique_ptr<ScheduleStrategy> inner_;
  Look look_;
};

class LookingSelector final : public ScheduleSelector {
 public:
  LookingSelector(std::shared_ptr<ScheduleSelector> inner, Look look)
      : inner_(std::move(inner)), look_(std::move(look)) {}
  std::unique_ptr<ScheduleStrategy> select(const RunPlan& plan) const override {
    return std::make_unique<LookingSchedule>(inner_->select(plan), look_);
  }

 private:
  std::shared_ptr<ScheduleSelector> inner_;
  Look look_;
};

}  // namespace

std::shared_ptr<ScheduleSelector> before_each_step(std::shared_ptr<ScheduleSelector> selector, Look look) {
  return std::make_shared<LookingSelector>(std::move(selector), std::move(look));
}

}  // namespace ranklab
