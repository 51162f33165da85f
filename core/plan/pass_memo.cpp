#include "core/plan/pass_memo.h"

#include <span>
#include <utility>

namespace ranklab {
namespace {

constexpr size_t kAxes = static_cast<size_t>(Axis::kCount);

CategoryBytes bytes_now() {
  CategoryBytes bytes{};
  const std::shared_ptr<MemoryBook> book = thread_memory_book();
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = book->bytes(static_cast<MemoryCategory>(i));
  return bytes;
}

CategoryBytes minus(CategoryBytes a, const CategoryBytes& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}
CategoryBytes plus(CategoryBytes a, const CategoryBytes& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace

PassProbe::PassProbe(RankContext& ctx)
    : ctx_(ctx),
      compute_ns_(ctx.clock().compute_ns()),
      flops_(ctx.op_observer()->flops()),
      kernel_times_(ctx.op_observer()->kernel_times()),
      bytes_(bytes_now()),
      before_(thread_memory_book()->peaks()),
      events_(ctx.tracer().trace().events.size()) {
  for (size_t axis = 0; axis < kAxes; ++axis) exposed_ns_[axis] = ctx.clock().exposed_ns(static_cast<Axis>(axis));
  thread_memory_book()->reset_peaks();
}

PassMemo PassProbe::end() {
  MemoryBook& book = *thread_memory_book();
  PassMemo memo{.compute_ns = ctx_.clock().compute_ns() - compute_ns_, .flops = ctx_.op_observer()->flops() - flops_};
  memo.kernel_times = ctx_.op_observer()->kernel_times().since(kernel_times_);
  for (size_t axis = 0; axis < kAxes; ++axis)
    memo.exposed_ns[axis] = ctx_.clock().exposed_ns(static_cast<Axis>(axis)) - exposed_ns_[axis];
  memo.kept = minus(bytes_now(), bytes_);
  const MemoryBook::Peaks peaks = book.peaks();
  memo.highest = {.at_peak = minus(peaks.at_peak, bytes_), .highest = minus(peaks.highest, bytes_)};
  book.raise_peaks(before_);
  const RankTrace& trace = ctx_.tracer().trace();
  memo.traffic.add(std::span(trace.events).subspan(events_), trace, ctx_.mesh(), ctx_.gpus_per_node());
  return memo;
}

KernelTimes PassProbe::catch_up_time(const PassMemo& memo) {
  VirtualClock& clock = ctx_.clock();
  const KernelTimes missing = memo.kernel_times.since(ctx_.op_observer()->kernel_times().since(kernel_times_));
  clock.advance(memo.compute_ns - (clock.compute_ns() - compute_ns_));
  for (size_t axis = 0; axis < kAxes; ++axis) {
    const int64_t exposed = memo.exposed_ns[axis];
    if (exposed > 0) clock.wait_until(clock.now_ns() + exposed, exposed, static_cast<Axis>(axis));
  }
  MemoryBook& book = *thread_memory_book();
  book.raise_peaks(before_);
  book.raise_peaks({.at_peak = plus(bytes_, memo.highest.at_peak), .highest = plus(bytes_, memo.highest.highest)});
  return missing;
}

CategoryBytes PassProbe::catch_up_bytes(const PassMemo& memo) {
  const CategoryBytes own = minus(bytes_now(), bytes_), more = minus(memo.kept, own);
  add_to_book(more);
  return more;
}

void add_to_book(const CategoryBytes& bytes) {
  MemoryBook& book = *thread_memory_book();
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != 0) book.add(static_cast<MemoryCategory>(i), bytes[i]);
}

}  // namespace ranklab
