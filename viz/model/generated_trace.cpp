#include "viz/model/generated_trace.h"

#include <cmath>

#include "core/pipeline/schedules.h"
#include "viz/model/schedule_trace.h"

namespace ranklab::viz {
namespace {

uint32_t name_index(RankTrace& trace, const std::string& name) {
  trace.names.push_back(name);
  return static_cast<uint32_t>(trace.names.size() - 1);
}

Event counter(uint32_t name, int64_t time_ns, double value) {
  Event event;
  event.kind = EventKind::kCounter;
  event.name = name;
  event.step = 0;
  event.virtual_begin_ns = event.virtual_end_ns = time_ns;
  event.value = value;
  return event;
}

// The step with its phase and counters.
void complete(RankTrace& trace, int64_t length_ns) {
  Event step;
  step.kind = EventKind::kPhase;
  step.name = name_index(trace, "step");
  step.step = 0;
  step.virtual_end_ns = length_ns;
  trace.events.push_back(step);
  trace.events.push_back(counter(name_index(trace, "memory/parameters"), length_ns, 1e9));
  trace.events.push_back(counter(name_index(trace, "memory/activations"), length_ns, 2e8 * (1 + trace.global_rank)));
  trace.events.push_back(counter(name_index(trace, "loss"), length_ns, 5));
}

void append_step(const std::vector<Event>& step, int number, int64_t length_ns, std::vector<Event>& to) {
  for (Event event : step) {
    event.step = number;
    event.virtual_begin_ns += number * length_ns;
    event.virtual_end_ns += number * length_ns;
    if (event.kind == EventKind::kCollective) {
      event.sequence = number;
      event.virtual_posted_ns += number * length_ns;
      event.virtual_matched_ns += number * length_ns;
      event.virtual_first_byte_ns += number * length_ns;
      event.logical_bytes = event.algorithm_bytes = event.wire_bytes = 1 << 20;
    }
    if (event.kind == EventKind::kCounter && event.value == 5) event.value = 2 + 3 * std::exp(-number / 50.0);
    to.push_back(event);
  }
}

}  // namespace

TraceFile generated_trace(int64_t events) {
  const Schedule schedule = make_schedule("1f1b", {.num_ranks = 8, .num_microbatches = 32});
  const ScheduleCosts costs = {.f = 1, .b = 1, .w = 1, .c = 0.125};
  const PipelineTimeline line = simulate(schedule, costs);
  TraceFile file = schedule_trace(schedule, line, costs.c);
  const auto length_ns = static_cast<int64_t>(std::llround(line.end * static_cast<double>(kUnitNs)));
  int64_t a_step = 0;
  for (RankTrace& trace : file.ranks) {
    complete(trace, length_ns);
    a_step += static_cast<int64_t>(trace.events.size());
  }
  const auto steps = static_cast<int>((events + a_step - 1) / a_step);
  for (RankTrace& trace : file.ranks) {
    const std::vector<Event> step = std::move(trace.events);
    trace.events.clear();
    trace.events.reserve(step.size() * static_cast<size_t>(steps));
    for (int s = 0; s < steps; ++s) append_step(step, s, length_ns, trace.events);
  }
  return file;
}

}  // namespace ranklab::viz
