#include "viz/model/store/generated_trace.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/base/kernel_bound.h"
#include "core/pipeline/schedules.h"
#include "viz/model/store/schedule_store.h"

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

// What an action runs: layers with two modules of two kernels each. They are recorded before the action, because they
// end before it.
class Modules {
 public:
  explicit Modules(RankTrace& trace) {
    for (int layer = 0; layer < kLayers; ++layer)
      for (const char* part : {"attention", "mlp"})
        modules_.push_back(name_index(trace, "layers." + std::to_string(layer) + "." + part));
    kernels_ = {name_index(trace, "norm"), name_index(trace, "gemm 4096x4096x1024")};
  }

  void add(const Event& action, std::vector<Event>& to) const {
    const int64_t length = action.virtual_end_ns - action.virtual_begin_ns;
    const auto count = static_cast<int64_t>(modules_.size());
    for (int64_t m = 0; m < count; ++m) {
      Event module = action;
      module.kind = EventKind::kModule;
      module.name = modules_[static_cast<size_t>(m)];
      module.virtual_begin_ns = action.virtual_begin_ns + length * m / count;
      module.virtual_end_ns = action.virtual_begin_ns + length * (m + 1) / count;
      kernels(module, to);
      to.push_back(module);
    }
  }

 private:
  static constexpr int kLayers = 2;

  // A short kernel limited by memory, and a long one limited by compute.
  void kernels(const Event& module, std::vector<Event>& to) const {
    Event kernel = module;
    kernel.kind = EventKind::kKernel;
    kernel.virtual_end_ns = module.virtual_begin_ns + (module.virtual_end_ns - module.virtual_begin_ns) / 5;
    kernel.name = kernels_[0];
    kernel.tag = static_cast<int>(KernelBound::kMemory);
    to.push_back(kernel);
    kernel.virtual_begin_ns = kernel.virtual_end_ns;
    kernel.virtual_end_ns = module.virtual_end_ns;
    kernel.name = kernels_[1];
    kernel.tag = static_cast<int>(KernelBound::kCompute);
    to.push_back(kernel);
  }

  std::vector<uint32_t> modules_;
  std::array<uint32_t, 2> kernels_{};
};

void add_modules(RankTrace& trace) {
  const Modules modules(trace);
  std::vector<Event> events;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCompute) modules.add(event, events);
    events.push_back(event);
  }
  trace.events = std::move(events);
}

// Adds the step's phase and counters.
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
  TraceFile file = schedule_file(schedule, line, costs.c);
  const auto length_ns = static_cast<int64_t>(std::llround(line.end * static_cast<double>(kScheduleUnitNs)));
  int64_t a_step = 0;
  for (RankTrace& trace : file.ranks) {
    add_modules(trace);
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
