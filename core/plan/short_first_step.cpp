#include "core/plan/short_first_step.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/plan/replay.h"
#include "core/plan/step_record.h"
#include "core/runtime/components.h"

namespace ranklab {
namespace {

class ShortFirst final : public ScheduleStrategy {
 public:
  ShortFirst(std::unique_ptr<ScheduleStrategy> first, std::unique_ptr<ScheduleStrategy> later)
      : first_(std::move(first)), later_(std::move(later)) {}
  std::string name() const override { return later_->name(); }
  StepOutput run_step(StepContext& context) override {
    return (context.step == 0 ? first_ : later_)->run_step(context);
  }
  StepOutput run_validation(StepContext& context, int64_t index) override {
    return later_->run_validation(context, index);
  }
  at::Tensor logits(StepContext& context, const Batch& batch) override { return later_->logits(context, batch); }

 private:
  std::unique_ptr<ScheduleStrategy> first_, later_;
};

class ShortFirstSelector final : public ScheduleSelector {
 public:
  explicit ShortFirstSelector(std::shared_ptr<ScheduleSelector> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<ScheduleStrategy> select(const RunPlan& plan) const override {
    RunPlan first = plan;
    first.schedule = shortest_schedule(plan.schedule);
    return std::make_unique<ShortFirst>(inner_->select(first), inner_->select(plan));
  }

 private:
  std::shared_ptr<ScheduleSelector> inner_;
};

bool splits(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) { return action.kind == ActionKind::kW; });
  });
}

}  // namespace

bool may_begin_short(const RunPlan& plan) {
  const bool ranks_meet = plan.mesh.size(Axis::kPp) == 1 || plan.config.clip_grad > 0;
  return ranks_meet && microbatches_are_alike(plan) && plan.schedule.num_microbatches > plan.schedule.num_chains();
}

Schedule shortest_schedule(const Schedule& of) {
  Schedule out = of;
  out.num_microbatches = of.num_chains();
  out.ranks.assign(of.ranks.size(), {});
  const bool split = splits(of);  // what stays between B and W is then known of the first pass
  for (int chain = 0; chain < of.num_chains(); ++chain) {
    const int begin = chain * of.chain_length, end = begin + of.chain_length;
    const auto add = [&](const Action& action) {
      out.ranks[static_cast<size_t>(out.rank(action.stage))].push_back(action);
    };
    for (int stage = begin; stage < end; ++stage) add(forward(stage, chain));
    for (int stage = end - 1; stage >= begin; --stage) {
      add(split ? input_grad(stage, chain) : backward(stage, chain));
      if (split) add(weight_grad(stage, chain));
    }
  }
  return out;
}

bool begins_as_it_ends(const StepRecord& record) {
  constexpr int64_t kShare = 2000;
  RankTime last;
  for (const RankRecord& rank : record.ranks) {
    last.begin_ns = std::max(last.begin_ns, rank.time.begin_ns);
    last.end_ns = std::max(last.end_ns, rank.time.end_ns);
  }
  return std::ranges::all_of(record.ranks, [&](const RankRecord& rank) {
    const int64_t before = last.begin_ns - rank.time.begin_ns, after = last.end_ns - rank.time.end_ns;
    return std::abs(before - after) <= record.step_ns / kShare;
  });
}

std::shared_ptr<ScheduleSelector> with_short_first_step(std::shared_ptr<ScheduleSelector> selector) {
  return std::make_shared<ShortFirstSelector>(std::move(selector));
}

}  // namespace ranklab
