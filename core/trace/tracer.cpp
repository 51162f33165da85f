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
  if (!enabled_) return;
  if (trace_.events.size() >= capacity_) {
    ++trace_.dropped;
    return;
  }
  Event& stored = trace_.events.emplace_back(event);
  if (stored.step < 0) stored.step = step_;
  if (stored.microbatch < 0) stored.microbatch = microbatch_;
  if (stored.kind == EventKind::kInstant || stored.kind == EventKind::kCounter) {
    stored.virtual_end_ns = stored.virtual_begin_ns;
    stored.wall_end_ns = stored.wall_begin_ns;
  }
}

void Tracer::set_group(Axis axis, std::vector<int> global_ranks) {
  for (TraceGroup& group : trace_.groups) {
    if (group.axis != axis) continue;
    group.global_ranks = std::move(global_ranks);
    return;
  }
  trace_.groups.push_back({axis, std::move(global_ranks)});
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
