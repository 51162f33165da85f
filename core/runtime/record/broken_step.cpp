#include "core/runtime/record/broken_step.h"

#include <exception>

#include "core/comm/event_now.h"
#include "core/trace/failed_event.h"

namespace ranklab {

void leave_broken_step(RankContext& rank, TraceCollector& collector) noexcept {
  try {
    if (rank.tracer().trace().events.empty()) return;
    Event mark = event_now(rank, EventKind::kInstant, kFailedEvent);
    mark.step = rank.tracer().step();
    rank.tracer().record(mark);
    collector.leave_alone(rank.tracer().take_events());
  } catch (const std::exception&) {  // only the rank's own error is reported
  }
}

void run_keeping_broken_step(World& world, const std::function<void(Endpoint&)>& rank, TraceCollector& collector,
                             const std::vector<std::shared_ptr<Hook>>& hooks) {
  try {
    world.run(rank);
  } catch (...) {
    try {
      const auto last = std::make_shared<const std::vector<RankTrace>>(collector.take_broken());
      for (const auto& hook : hooks)
        if (!last->empty()) hook->on_traces(last);
    } catch (const std::exception&) {  // as above
    }
    throw;
  }
}

}  // namespace ranklab
