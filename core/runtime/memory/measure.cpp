#include "core/runtime/memory/measure.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/runtime/before_step.h"
#include "core/runtime/engine.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

// Indexed by global rank; ranks' threads add to it.
struct Ranks {
  std::mutex mutex;
  std::map<int, MeasuredMemory> measured;
};

// Records the peaks of the start-up, and resets peaks before each step.
void look(StepContext& context, Ranks& ranks) {
  MemoryBook& book = *thread_memory_book();
  if (context.step > 0) return book.reset_peaks();
  const MemoryBook::Peaks peaks = book.peaks();
  const std::lock_guard lock(ranks.mutex);
  MeasuredMemory& rank = ranks.measured[context.ctx.global_rank()];
  rank.at_start_peak = peaks.at_peak;
  rank.start_highest = peaks.highest;
}

void read(const MemoryBook& book, int global_rank, Ranks& ranks) {
  const MemoryBook::Peaks peaks = book.peaks();
  const std::lock_guard lock(ranks.mutex);
  MeasuredMemory& rank = ranks.measured[global_rank];
  rank.global_rank = global_rank;
  rank.peak_bytes = book.peak_bytes();
  rank.at_peak = peaks.at_peak;
  rank.highest = peaks.highest;
  rank.at_end = book.bytes();
}

}  // namespace

std::vector<MeasuredMemory> measure_memory(RuntimeComponents parts, RunPlan plan) {
  install_booking_allocator();
  constexpr int64_t kSteps = 2;
  plan.config.eval_interval = 0;
  plan.config.sample_tokens = 0;
  plan.config.trace = false;
  const auto ranks = std::make_shared<Ranks>();
  parts.schedule_selector =
      before_each_step(parts.schedule_selector, [ranks](StepContext& context) { look(context, *ranks); });
  RuntimeEngine engine(std::move(parts), std::move(plan));
  engine.set_finale([&](StepContext& context) { read(*thread_memory_book(), context.ctx.global_rank(), *ranks); });
  engine.fit(kSteps);
  std::vector<MeasuredMemory> result;
  for (const auto& [global_rank, measured] : ranks->measured) result.push_back(measured);
  return result;
}

}  // namespace ranklab
