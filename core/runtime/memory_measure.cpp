#include "core/runtime/memory_measure.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/runtime/engine.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

// By global rank; ranks' threads add to it.
struct Ranks {
  std::mutex mutex;
  std::map<int, MeasuredMemory> measured;
};

template <typename BytesOf>
MeasuredMemory::Bytes by_category(const BytesOf& bytes_of) {
  MeasuredMemory::Bytes out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = bytes_of(static_cast<MemoryCategory>(i));
  return out;
}

// Notes the peaks before the first step, and forgets them before the others.
class FreshPeaks : public ScheduleStrategy {
 public:
  FreshPeaks(std::unique_ptr<ScheduleStrategy> inner, std::shared_ptr<Ranks> ranks)
      : inner_(std::move(inner)), ranks_(std::move(ranks)) {}
  std::string name() const override { return inner_->name(); }
  StepOutput run_step(StepContext& context) override {
    if (context.step == 0) note_start(context.ctx.global_rank());
    if (context.step > 0) thread_memory_book()->reset_peaks();
    return inner_->run_step(context);
  }
  StepOutput run_validation(StepContext& context, int64_t index) override {
    return inner_->run_validation(context, index);
  }
  at::Tensor logits(StepContext& context, const Batch& batch) override { return inner_->logits(context, batch); }

 private:
  void note_start(int global_rank) const {
    const std::shared_ptr<MemoryBook> book = thread_memory_book();
    const std::lock_guard lock(ranks_->mutex);
    MeasuredMemory& rank = ranks_->measured[global_rank];
    rank.at_start_peak = by_category([&](MemoryCategory category) { return book->bytes_at_peak(category); });
    rank.start_highest = by_category([&](MemoryCategory category) { return book->peak_bytes(category); });
  }

  std::unique_ptr<ScheduleStrategy> inner_;
  std::shared_ptr<Ranks> ranks_;
};

class FreshPeaksSelector : public ScheduleSelector {
 public:
  FreshPeaksSelector(std::shared_ptr<ScheduleSelector> inner, std::shared_ptr<Ranks> ranks)
      : inner_(std::move(inner)), ranks_(std::move(ranks)) {}
  std::unique_ptr<ScheduleStrategy> select(const RunPlan& plan) const override {
    return std::make_unique<FreshPeaks>(inner_->select(plan), ranks_);
  }

 private:
  std::shared_ptr<ScheduleSelector> inner_;
  std::shared_ptr<Ranks> ranks_;
};

void read(const MemoryBook& book, int global_rank, Ranks& ranks) {
  const std::lock_guard lock(ranks.mutex);
  MeasuredMemory& rank = ranks.measured[global_rank];
  rank.global_rank = global_rank;
  rank.peak_bytes = book.peak_bytes();
  rank.at_peak = by_category([&](MemoryCategory category) { return book.bytes_at_peak(category); });
  rank.highest = by_category([&](MemoryCategory category) { return book.peak_bytes(category); });
  rank.at_end = by_category([&](MemoryCategory category) { return book.bytes(category); });
}

}  // namespace

std::vector<MeasuredMemory> measure_memory(RuntimeComponents parts, RunPlan plan) {
  install_booking_allocator();
  constexpr int64_t kSteps = 2;
  plan.config.eval_interval = 0;
  plan.config.sample_tokens = 0;
  plan.config.trace = false;
  const auto ranks = std::make_shared<Ranks>();
  parts.schedule_selector = std::make_shared<FreshPeaksSelector>(parts.schedule_selector, ranks);
  RuntimeEngine engine(std::move(parts), std::move(plan));
  engine.set_finale([&](StepContext& context) { read(*thread_memory_book(), context.ctx.global_rank(), *ranks); });
  engine.fit(kSteps);
  std::vector<MeasuredMemory> result;
  for (const auto& [global_rank, measured] : ranks->measured) result.push_back(measured);
  return result;
}

}  // namespace ranklab
