#include "core/runtime/memory_counters.h"

#include <string>

namespace ranklab {

MemoryCounters::MemoryCounters(RankContext& ctx) : ctx_(ctx) {
  for (size_t i = 0; i < names_.size(); ++i) {
    names_[i] = ctx.tracer().intern("memory/" + std::string(name(static_cast<MemoryCategory>(i))));
  }
}

void MemoryCounters::record() {
  const auto book = thread_memory_book();
  if (!book || !ctx_.tracer().enabled()) return;
  Event event;
  event.kind = EventKind::kCounter;
  event.virtual_begin_ns = event.virtual_end_ns = ctx_.clock().now_ns();
  event.wall_begin_ns = event.wall_end_ns = wall_now_ns();
  for (size_t i = 0; i < names_.size(); ++i) {
    event.name = names_[i];
    event.value = static_cast<double>(book->bytes(static_cast<MemoryCategory>(i)));
    ctx_.tracer().record(event);
  }
}

}  // namespace ranklab
