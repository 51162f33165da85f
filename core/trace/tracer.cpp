#include "core/trace/tracer.h"

#include <chrono>
#include <utility>

namespace ranklab {
Tracer::Tracer(int global_rank, std::string label, size_t capacity) : capacity_(capacity) {
  trace_.global_rank = global_rank;
  trace_.label = std::move(label);
}

uint32_t Tracer::intern(std::string_view name) {
  const auto [it, inserted] = index_.try_emplace(std::string(name), static_cast<uint32_t>(trace_.names.size()));
  if (inserted) trace_.names.emplace_back(name);
  return it->second;
}

void Tracer::record(const Event& event) {
  if (!wants(event.kind)) return;
  if (keeping_) keep(event);
  if (sink_ != nullptr || stepper_ != nullptr) show(event, {});
}

void Tracer::record(Event event, std::vector<double> array) {
  if (!wants(event.kind)) return;
  const bool watched = sink_ != nullptr || stepper_ != nullptr;
  if (keeping_) {
    if (trace_.events.size() < capacity_) {
      trace_.arrays.push_back(array);
      event.array = static_cast<uint32_t>(trace_.arrays.size());
    }
    keep(event);
  }
  if (watched) show(event, std::move(array));
}

void Tracer::complete(Event& event) const {
  if (event.step < 0) event.step = step_;
  if (event.microbatch < 0) event.microbatch = microbatch_;
  if (event.kind == EventKind::kInstant || event.kind == EventKind::kCounter) {
    event.virtual_end_ns = event.virtual_begin_ns;
    event.wall_end_ns = event.wall_begin_ns;
  }
}

void Tracer::keep(const Event& event) {
  if (trace_.events.size() < capacity_) {
    complete(trace_.events.emplace_back(event));
  } else {
    ++trace_.dropped;
  }
}

void Tracer::show(Event event, std::vector<double> array) {
  complete(event);
  event.array = 0;  // an index into the stored arrays; the sink gets `array` itself
  if (sink_ != nullptr) sink_->push(trace_, event, std::move(array));
  if (stepper_ != nullptr) stepper_->recorded(trace_.global_rank, event, trace_.names[event.name]);
}

void Tracer::at_boundary(Boundary boundary) {
  if (stepper_ == nullptr) return;
  if (boundary.step < 0) boundary.step = step_;
  if (boundary.microbatch < 0) boundary.microbatch = microbatch_;
  stepper_->arrive(trace_.global_rank, std::move(boundary));
}

void Tracer::observe(std::string_view counter, double value, int64_t virtual_ns) {
  if (stepper_ == nullptr) return;
  Event event;
  event.kind = EventKind::kCounter;
  event.virtual_begin_ns = virtual_ns;
  event.wall_begin_ns = wall_now_ns();
  event.value = value;
  complete(event);
  stepper_->recorded(trace_.global_rank, event, counter);
}

void Tracer::set_group(Axis axis, std::vector<int> global_ranks) {
  for (TraceGroup& group : trace_.groups) {
    if (group.axis != axis) continue;
    group.global_ranks = std::move(global_ranks);
    return;
  }
  trace_.groups.push_back({axis, std::move(global_ranks)});
}

RankTrace Tracer::take_events() {
  RankTrace taken = {.global_rank = trace_.global_rank,
                     .label = trace_.label,
                     .names = trace_.names,
                     .groups = trace_.groups,
                     .arrays = std::exchange(trace_.arrays, {}),
                     .events = std::exchange(trace_.events, {}),
                     .dropped = std::exchange(trace_.dropped, 0)};
  trace_.events.reserve(taken.events.size());  // the next step will record about as much
  return taken;
}

RankTrace Tracer::take() {
  RankTrace taken = std::move(trace_);
  trace_ = RankTrace{};
  trace_.global_rank = taken.global_rank;
  trace_.label = taken.label;
  trace_.groups = taken.groups;
  index_.clear();
  return taken;
}

int64_t wall_now_ns() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point epoch = Clock::now();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - epoch).count();
}

}  // namespace ranklab
