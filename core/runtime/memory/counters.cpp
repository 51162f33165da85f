#include "core/runtime/memory/counters.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace ranklab {
namespace {

constexpr int64_t kResolution = 64;  // samples between zero and the peak

}  // namespace

MemoryCounters::MemoryCounters(RankContext& ctx, int64_t limit_bytes)
    : ctx_(ctx),
      limit_bytes_(static_cast<double>(limit_bytes)),
      limit_name_(ctx.tracer().intern("memory/limit")),
      book_(thread_memory_book()) {
  for (size_t i = 0; i < names_.size(); ++i) {
    names_[i] = ctx.tracer().intern("memory/" + std::string(name(static_cast<MemoryCategory>(i))));
  }
  if (book_ && ctx.op_observer() != nullptr) ctx.op_observer()->set_after_op([this] { sample(); });
}

MemoryCounters::~MemoryCounters() {
  if (book_ && ctx_.op_observer() != nullptr) ctx_.op_observer()->set_after_op({});
}

MemoryCounters::Moment MemoryCounters::now() const { return {ctx_.clock().now_ns(), wall_now_ns()}; }

void MemoryCounters::record() {
  if (!book_ || !ctx_.tracer().enabled()) return;
  look();
  record_highest();
  const Moment at = now();
  record(book_->bytes(), at, true);
  if (limit_bytes_ > 0) record(limit_name_, limit_bytes_, at);
}

void MemoryCounters::sample() {
  if (!ctx_.tracer().enabled()) return;
  look();
  const int64_t step = book_->peak_bytes() / kResolution;
  if (std::abs(book_->total_bytes() - together(recorded_)) <= step) return;
  record_highest();
  record(book_->bytes(), now(), false);
}

void MemoryCounters::look() {
  if (step_ != ctx_.tracer().step()) {  // peaks before the step are not counted in it
    step_ = ctx_.tracer().step();
    step_highest_ = 0;
    highest_ = {};
    book_->take_highest();
    known_peak_ = book_->peak_bytes();
    last_look_ns_ = ctx_.clock().now_ns();
  }
  CategoryBytes high = book_->take_highest();
  // Only the peak of what a replayed graph holds is known.
  if (book_->peak_bytes() > known_peak_) {
    known_peak_ = book_->peak_bytes();
    if (known_peak_ > together(high)) high = book_->peaks().at_peak;
  }
  const int64_t begin_ns = last_look_ns_, end_ns = last_look_ns_ = ctx_.clock().now_ns();
  if (together(high) <= together(highest_)) return;
  highest_ = high;
  // For a moment inside an op, only the op is known, not the exact time.
  const bool inside = together(high) > book_->total_bytes();
  highest_at_ = {inside ? begin_ns + (end_ns - begin_ns) / 2 : end_ns, wall_now_ns()};
}

void MemoryCounters::record_highest() {
  const int64_t total = together(highest_);
  if (total > step_highest_ && total > book_->total_bytes()) record(highest_, highest_at_, true);
  highest_ = {};
}

// `all`: also records unchanged categories, so that two samples at the same time can be told apart.
void MemoryCounters::record(const CategoryBytes& bytes, Moment at, bool all) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (all || bytes[i] != recorded_[i]) record(names_[i], static_cast<double>(bytes[i]), at);
  recorded_ = bytes;
  step_highest_ = std::max(step_highest_, together(bytes));
}

void MemoryCounters::record(uint32_t name, double value, Moment at) {
  Event event;
  event.kind = EventKind::kCounter;
  event.virtual_begin_ns = event.virtual_end_ns = at.virtual_ns;
  event.wall_begin_ns = event.wall_end_ns = at.wall_ns;
  event.name = name;
  event.value = value;
  ctx_.tracer().record(event);
}

}  // namespace ranklab
