// A step of two data-parallel ranks by hand: a layer of 100 elements of 2 bytes in a bucket of 128, sharded, and 64
// elements of experts that each rank has alone; rank 0 gathers, uses, frees, reduces and updates.
#pragma once
#include <string>
#include <vector>

#include "core/trace/zero_event.h"
#include "tests/viz/model/make_trace.h"

namespace ranklab::viz::samples {

inline Event zero_moment(Tracer& tracer, const std::string& name, int64_t at) {
  Event event;
  event.kind = EventKind::kInstant;
  event.name = tracer.intern(name);
  event.step = 0;
  event.virtual_begin_ns = event.virtual_end_ns = at;
  return event;
}

// `grad_bytes` of an element's gradient; 0: the trace is from before these were told.
inline TraceFile zero_run(int stage, int grad_bytes = 0) {
  TraceFile file{.ranks = {}, .clock = TraceClock::kVirtual, .world_size = 2};
  for (int rank = 0; rank < 2; ++rank) {
    Tracer tracer(rank, "dp" + std::to_string(rank));
    const auto bucket = [&](const std::string& label, std::vector<double> numbers) {
      if (grad_bytes > 0) numbers.push_back(grad_bytes);
      tracer.record(zero_moment(tracer, std::string(kZeroBucketEvent) + label, 10), std::move(numbers));
    };
    const double part = rank, kind = stage;
    bucket("layers.0 experts", {64, 0, 1, 0, 2, kind, 1, 12});
    bucket("layers.0", {128, 28, 2, part, 2, kind, 0, 12});
    tracer.record(phase(tracer, "step", 0, 500));
    const auto news = [&](ZeroState state, int64_t at) {
      if (rank == 0) tracer.record(zero_moment(tracer, zero_event_name(state, "layers.0"), at));
    };
    news(ZeroState::kGathering, 100);
    news(ZeroState::kGathered, 150);
    news(ZeroState::kFreed, 200);
    news(ZeroState::kPartial, 210);
    news(ZeroState::kReduced, 300);
    news(ZeroState::kUpdated, 400);
    file.ranks.push_back(tracer.take());
  }
  return file;
}

}  // namespace ranklab::viz::samples
