#include "core/runtime/memory/counters.h"

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

void MemoryCounters::record() {
  if (!book_ || !ctx_.tracer().enabled()) return;
  for (size_t i = 0; i < kCategories; ++i) record(i, book_->bytes(static_cast<MemoryCategory>(i)));
  if (limit_bytes_ > 0) record(limit_name_, limit_bytes_);
  recorded_total_ = book_->total_bytes();
}

void MemoryCounters::sample() {
  if (!ctx_.tracer().enabled()) return;
  const int64_t total = book_->total_bytes(), step = book_->peak_bytes() / kResolution;
  if (std::abs(total - recorded_total_) <= step) return;
  for (size_t i = 0; i < kCategories; ++i) {
    const int64_t bytes = book_->bytes(static_cast<MemoryCategory>(i));
    if (bytes != recorded_[i]) record(i, bytes);
  }
  recorded_total_ = total;
}

void MemoryCounters::record(size_t category, int64_t bytes) {
  record(names_[category], static_cast<double>(bytes));
  recorded_[category] = bytes;
}

void MemoryCounters::record(uint32_t name, double value) {
  Event event;
  event.kind = EventKind::kCounter;
  event.virtual_begin_ns = event.virtual_end_ns = ctx_.clock().now_ns();
  event.wall_begin_ns = event.wall_end_ns = wall_now_ns();
  event.name = name;
  event.value = value;
  ctx_.tracer().record(event);
}

}  // namespace ranklab
