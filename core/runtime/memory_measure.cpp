#include "core/runtime/memory_measure.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/runtime/engine.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

// Forgets the peaks before the last step.
class FreshPeaks : public ScheduleStrategy {
 public:
  explicit FreshPeaks(std::unique_ptr<ScheduleStrategy> inner) : inner_(std::move(inner)) {}
  std::string name() const override { return inner_->name(); }
  StepOutput run_step(StepContext& context) override {
    if (context.step > 0) thread_memory_book()->reset_peaks();
    return inner_->run_step(context);
  }
  StepOutput run_validation(StepContext& context, int64_t index) override {
    return inner_->run_validation(context, index);
  }
  at::Tensor logits(StepContext& context, const Batch& batch) override { return inner_->logits(context, batch); }

 private:
  std::unique_ptr<ScheduleStrategy> inner_;
};

class FreshPeaksSelector : public ScheduleSelector {
 public:
  explicit FreshPeaksSelector(std::shared_ptr<ScheduleSelector> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<ScheduleStrategy> select(const RunPlan& plan) const override {
    return std::make_unique<FreshPeaks>(inner_->select(plan));
  }

 private:
  std::shared_ptr<ScheduleSelector> inner_;
};

MeasuredMemory read(const MemoryBook& book, int global_rank) {
  MeasuredMemory out{.global_rank = global_rank, .peak_bytes = book.peak_bytes()};
  for (size_t i = 0; i < out.at_peak.size(); ++i) {
    out.at_peak[i] = book.bytes_at_peak(static_cast<MemoryCategory>(i));
    out.highest[i] = book.peak_bytes(static_cast<MemoryCategory>(i));
    out.at_end[i] = book.bytes(static_cast<MemoryCategory>(i));
  }
  return out;
}

}  // namespace

std::vector<MeasuredMemory> measure_memory(RuntimeComponents parts, RunPlan plan) {
  install_booking_allocator();
  constexpr int64_t kSteps = 2;
  plan.config.eval_interval = 0;
  plan.config.sample_tokens = 0;
  plan.config.trace = false;
  parts.schedule_selector = std::make_shared<FreshPeaksSelector>(parts.schedule_selector);
  RuntimeEngine engine(std::move(parts), std::move(plan));
  std::vector<MeasuredMemory> ranks;
  std::mutex mutex;
  engine.set_finale([&](StepContext& context) {
    const std::lock_guard lock(mutex);
    ranks.push_back(read(*thread_memory_book(), context.ctx.global_rank()));
  });
  engine.fit(kSteps);
  std::sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.global_rank < b.global_rank; });
  return ranks;
}

}  // namespace ranklab
