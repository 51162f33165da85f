// Bytes of tensors, according to the rank's memory book (core/sim/memory_scope.h); nothing where memory is not tracked.
#include <algorithm>
#include <deque>

#include "core/runtime/sentinels/families.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

constexpr size_t kMemoryWindow = 5;
constexpr double kMebibyte = 1024.0 * 1024.0;

class MemoryFamily final : public SentinelFamily {
 public:
  MemoryFamily(const SentinelContext& context, RankTable& table)
      : plan_(context.plan),
        device_bytes_(static_cast<double>(context.plan.profile.memory_bytes)),
        slots_(table.reserve(kSlots)) {}

  void fill(const SentinelStep& step, RankTable& table) override {
    const auto book = thread_memory_book();
    if (!book || book->peak_bytes() == 0) return;
    const auto now = static_cast<double>(book->total_bytes());
    table.mine(slots_ + kNow) = now;
    table.mine(slots_ + kPeak) = static_cast<double>(book->peak_bytes());
    restart_with_batches_of(plan_.sequences_of(step.step));
    last_.push_back(now);
    // Memory of checkpoints and messages comes and goes, so the minimum over several steps shows what stays. Step 0
    // creates the optimizer states.
    if (last_.size() == kMemoryWindow + 1) {
      last_.pop_front();
      const double least = *std::min_element(last_.begin(), last_.end());
      if (first_ == 0) first_ = least;
      if (first_ > 0) table.mine(slots_ + kGrowth) = least / first_;
    }
  }

  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    out.add("allocated", table.most(slots_ + kNow) / kMebibyte);
    out.add("max_allocated", table.most(slots_ + kPeak) / kMebibyte);
    if (device_bytes_ > 0) out.add("reserved", table.most(slots_ + kPeak) / device_bytes_);
    out.add("memory_growth", table.most(slots_ + kGrowth));
  }

 private:
  enum Slot { kNow, kPeak, kGrowth, kSlots };

  // A larger batch may hold more memory: from its second microbatch on there is a sum of gradients.
  void restart_with_batches_of(int64_t sequences) {
    if (sequences == sequences_) return;
    sequences_ = sequences;
    last_.clear();
    first_ = 0;
  }

  const RunPlan& plan_;
  double device_bytes_;
  size_t slots_;
  std::deque<double> last_;
  double first_ = 0;
  int64_t sequences_ = 0;  // batch size to which these measurements belong
};

}  // namespace

std::unique_ptr<SentinelFamily> make_memory_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<MemoryFamily>(context, table);
}

}  // namespace ranklab
