// Compares the learning rate that updates use with the one of the schedule.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/config/lr_choice.h"
#include "core/runtime/sentinels/families.h"

namespace ranklab {
namespace {

class RateFamily final : public SentinelFamily, public UpdateWatch {
 public:
  RateFamily(const SentinelContext& context, RankTable& table)
      : schedule_(lr_schedule_of(context.plan.config, context.plan.ramp)),
        optimizer_(context.optimizer),
        slot_(table.reserve()) {}

  UpdateWatch* update_watch() override { return this; }
  void begin(int64_t) override {
    used_ = std::numeric_limits<double>::quiet_NaN();
    skipped_ = optimizer_.skipped();  // the number before this step's update, which is counted later
  }
  void before_update(const UpdateView& update) override { used_ = update.lr; }
  void after_update(const UpdateView&) override {}

  void fill(const SentinelStep&, RankTable& table) override { table.mine(slot_) = used_; }
  void report(const SentinelStep& step, const RankTable& table, SentinelReport& out) override {
    const double least = table.least(slot_), most = table.most(slot_);
    if (std::isnan(least)) return;  // the update was skipped, or the optimizer does not show it
    out.add("lr", most);
    const double want = schedule_.at(step.step, skipped_);
    const double off = std::max(std::abs(most - want), std::abs(least - want));
    out.add("lr_schedule", off == 0 ? 0 : off / std::max(want, std::numeric_limits<double>::min()));
  }

 private:
  LrSchedule schedule_;
  RankOptimizer& optimizer_;
  size_t slot_;
  SkippedSteps skipped_;
  double used_ = 0;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_rate_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<RateFamily>(context, table);
}

}  // namespace ranklab
