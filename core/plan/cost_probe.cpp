#include "core/plan/cost_probe.h"

#include <span>

namespace ranklab {

CostProbe::CostProbe(RankContext& ctx)
    : ctx_(ctx),
      begin_(ctx.time()),
      bytes_(thread_memory_book()->bytes()),
      peaks_(thread_memory_book()->peaks()),
      events_(ctx.tracer().trace().events.size()) {
  thread_memory_book()->reset_peaks();
}

CostMemo CostProbe::end() {
  MemoryBook& book = *thread_memory_book();
  CostMemo memo{.time = ctx_.time().since(begin_), .before = bytes_, .after = book.bytes(), .peaks = book.peaks()};
  book.raise_peaks(peaks_);
  const RankTrace& trace = ctx_.tracer().trace();
  memo.traffic.add(std::span(trace.events).subspan(events_), trace, ctx_.mesh(), ctx_.gpus_per_node());
  return memo;
}

void CostProbe::catch_up_time(const CostMemo& memo) {
  VirtualClock& clock = ctx_.clock();
  const RankTime own = ctx_.time().since(begin_);
  ctx_.op_observer()->add(memo.time.flops - own.flops, memo.time.kernel_times.since(own.kernel_times));
  clock.advance(memo.time.compute_ns - own.compute_ns);
  for (size_t axis = 0; axis < memo.time.exposed_ns.size(); ++axis) {
    const int64_t exposed = memo.time.exposed_ns[axis];
    if (exposed > 0) clock.wait_until(clock.now_ns() + exposed, exposed, static_cast<Axis>(axis));
  }
  clock.wait_until(clock.now_ns() + memo.time.waited_ns, 0, Axis::kWorld);
  MemoryBook& book = *thread_memory_book();
  book.raise_peaks(peaks_);
  book.raise_peaks(memo.peaks.above(memo.before).on(bytes_));
}

CategoryBytes CostProbe::catch_up_bytes(const CostMemo& memo) {
  MemoryBook& book = *thread_memory_book();
  const CategoryBytes own = minus(book.bytes(), bytes_), more = minus(memo.kept(), own);
  book.add(more);
  return more;
}

}  // namespace ranklab
