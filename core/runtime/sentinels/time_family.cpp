// Step times: wall time and, if there is one, the time of the virtual clock. Wall time is rank 0's.
#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "core/base/numbers/median.h"
#include "core/runtime/sentinels/families.h"

namespace ranklab {
namespace {

// steps over which the median is taken, and the fewest for which it is used
constexpr size_t kTimeWindow = 20, kLeastTimes = 3;

class TimeFamily final : public SentinelFamily, public BatchWatch {
 public:
  TimeFamily(SentinelContext& context, RankTable& table)
      : context_(context),
        slots_(table.reserve(kSlots)),
        flops_per_token_(context.plan.config.model.training_flops_per_token(context.plan.config.model.seq_length)) {}

  BatchWatch* batch_watch() override { return this; }
  void begin(int64_t) override {
    wait_ns_ = 0;
    if (last_ns_ == 0) last_ns_ = context_.wall_ns();
  }
  void loaded(const Batch&, int64_t wait_ns) override { wait_ns_ += wait_ns; }

  void fill(const SentinelStep&, RankTable& table) override {
    const int64_t now_ns = context_.wall_ns();
    table.mine(slots_ + kStep) = static_cast<double>(now_ns - last_ns_) * 1e-9;
    table.mine(slots_ + kWait) = static_cast<double>(wait_ns_) * 1e-9;
    const int64_t compute_ns = context_.ctx.clock().compute_ns();
    if (compute_ns > 0) table.mine(slots_ + kCompute) = static_cast<double>(compute_ns - last_compute_ns_);
    last_ns_ = now_ns;
    last_compute_ns_ = compute_ns;
  }

  void report(const SentinelStep& step, const RankTable& table, SentinelReport& out) override {
    const double seconds = table.of(0, slots_ + kStep), wait = table.most(slots_ + kWait);
    if (seconds > 0) report_wall(step, seconds, wait, out);
    const double virtual_ms = step.metrics->virtual_step_ms;
    if (virtual_ms > 0) out.add("mfu", step.metrics->mfu);
    if (const double time = virtual_ms > 0 ? virtual_ms : seconds * 1e3; time > 0) report_drop(step, time, out);
    report_straggler(table, out);
  }

 private:
  enum Slot { kStep, kWait, kCompute, kSlots };

  void report_wall(const SentinelStep& step, double seconds, double wait, SentinelReport& out) const {
    const double tokens = static_cast<double>(context_.plan.tokens_of(step.metrics->step));
    const auto counted = static_cast<double>(step.metrics->tokens);
    out.add("step_seconds", seconds);
    out.add("data_wait_seconds", wait);
    out.add("data_wait", wait / seconds);
    out.add("compute_seconds", seconds - wait);
    out.add("compute_frac", (seconds - wait) / seconds);
    out.add("steps_per_second", 1 / seconds);
    out.add("tokens_per_second", tokens / seconds);
    out.add("effective_tokens_per_second", counted / seconds);
    out.add("samples_per_second", static_cast<double>(context_.plan.sequences_of(step.metrics->step)) / seconds);
    out.add("achieved_tflops", flops_per_token_ * tokens / seconds * 1e-12);
  }

  // A growing batch takes longer per step, but not per sequence.
  void report_drop(const SentinelStep& step, double step_time, SentinelReport& out) {
    const double time = step_time / static_cast<double>(context_.plan.sequences_of(step.metrics->step));
    if (times_.size() >= kLeastTimes) out.add("throughput_drop", time / median({times_.begin(), times_.end()}));
    times_.push_back(time);
    if (times_.size() > kTimeWindow) times_.pop_front();
  }

  // Stages have different amounts of work, but the ranks of one stage have the same.
  void report_straggler(const RankTable& table, SentinelReport& out) const {
    std::map<int, std::vector<double>> stages;
    for (int rank = 0; rank < table.ranks(); ++rank) {
      if (const double time = table.of(rank, slots_ + kCompute); time > 0)
        stages[context_.ctx.mesh().coordinate(Axis::kPp, rank)].push_back(time);
    }
    double worst = 0;
    for (const auto& [stage, times] : stages)
      worst = std::max(worst, *std::max_element(times.begin(), times.end()) / median(times));
    if (worst > 0) out.add("straggler", worst);
  }

  SentinelContext& context_;
  size_t slots_;
  double flops_per_token_;
  int64_t wait_ns_ = 0, last_ns_ = 0, last_compute_ns_ = 0;
  std::deque<double> times_;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_time_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<TimeFamily>(context, table);
}

}  // namespace ranklab
