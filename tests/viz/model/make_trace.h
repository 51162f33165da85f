// Small traces by hand, with times that a reader can add up.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/trace/tracer.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz::samples {

inline Event compute(Tracer& tracer, const std::string& name, int64_t begin, int64_t end, int step = 0,
                     int microbatch = -1, int stage = -1) {
  Event event;
  event.kind = EventKind::kCompute;
  event.name = tracer.intern(name);
  event.step = step;
  event.microbatch = microbatch;
  event.stage = stage;
  event.virtual_begin_ns = begin;
  event.virtual_end_ns = end;
  return event;
}

inline Event phase(Tracer& tracer, const std::string& name, int64_t begin, int64_t end, int step = 0) {
  Event event = compute(tracer, name, begin, end, step);
  event.kind = EventKind::kPhase;
  return event;
}

// A call that its rank posted at `posted`, that was on the link from `begin` to `end`.
struct Call {
  Axis axis = Axis::kDp;
  Verb verb = Verb::kAllReduce;
  int64_t sequence = 0;
  int64_t posted = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t exposed = 0;
  int64_t peer_wait = 0;
  int64_t logical = 0;
  int64_t algorithm = 0;
  int64_t wire = 0;
  int peer = -1;
  int tag = 0;
  int step = 0;
  DType dtype = DType::kFloat32;
};

inline Event call(Tracer& tracer, const Call& c) {
  Event event;
  event.kind = EventKind::kCollective;
  event.axis = c.axis;
  event.verb = c.verb;
  event.dtype = c.dtype;
  event.name = tracer.intern(name(c.verb));
  event.step = c.step;
  event.peer = c.peer;
  event.tag = c.tag;
  event.sequence = c.sequence;
  event.virtual_posted_ns = c.posted;
  event.virtual_matched_ns = event.virtual_begin_ns = event.virtual_first_byte_ns = c.begin;
  event.virtual_end_ns = c.end;
  event.virtual_exposed_ns = c.exposed;
  event.virtual_peer_wait_ns = c.peer_wait;
  event.logical_bytes = c.logical;
  event.algorithm_bytes = c.algorithm;
  event.wire_bytes = c.wire;
  return event;
}

// The same event at these times of the wall clock.
inline Event on_wall_clock(Event event, int64_t begin, int64_t end) {
  event.wall_begin_ns = begin;
  event.wall_end_ns = end;
  return event;
}

inline Event counter(Tracer& tracer, const std::string& name, int64_t at, double value, int step = 0) {
  Event event;
  event.kind = EventKind::kCounter;
  event.name = tracer.intern(name);
  event.step = step;
  event.virtual_begin_ns = event.virtual_end_ns = at;
  event.value = value;
  return event;
}

inline TraceFile file_of(std::vector<RankTrace> ranks) {
  TraceFile file;
  file.world_size = static_cast<int>(ranks.size());
  file.schema_version = 1;
  file.ranks = std::move(ranks);
  return file;
}

// Two data-parallel ranks. Rank 0 works 0..100 (F), rank 1 works 0..60 (F); both all-reduce over dp, which starts when
// rank 0 has posted (100) and takes 30; then both work 20 more (optimizer, until 150).
inline TraceStore straggler_store() {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "dp" + std::to_string(rank));
    tracer.set_group(Axis::kDp, {0, 1});
    const int64_t done = rank == 0 ? 100 : 60;
    tracer.record(compute(tracer, "F", 0, done, 0, 0));
    tracer.record(call(tracer, {.posted = done,
                                .begin = 100,
                                .end = 130,
                                .exposed = 30,
                                .peer_wait = 100 - done,
                                .logical = 1000,
                                .algorithm = 1000,
                                .wire = 500}));
    tracer.record(compute(tracer, "optimizer", 130, 150, 0));
    ranks.push_back(tracer.take());
  }
  return TraceStore(file_of(std::move(ranks)), "by hand");
}

}  // namespace ranklab::viz::samples
