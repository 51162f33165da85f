// Attention of two context-parallel ranks by hand, a sequence of four positions in two chunks, in two layers, forward
// and backward. Rank 0 has the first chunk (3 pairs of query and key), rank 1 the second: 3 pairs of its own keys, and
// 4 of rank 0's keys, which come after a hop.
#pragma once
#include <string>
#include <vector>

#include "core/trace/attention_event.h"
#include "tests/viz/model/make_trace.h"

namespace ranklab::viz::samples {

inline Event attention_span(Tracer& tracer, const std::string& name, int64_t begin, int64_t end, double pairs) {
  Event event = compute(tracer, std::string(kAttentionEvent) + name, begin, end, 0, 0);
  event.kind = EventKind::kAttention;
  event.value = pairs;
  return event;
}

inline Event module_span(Tracer& tracer, const std::string& name, int64_t begin, int64_t end) {
  Event event = compute(tracer, name, begin, end, 0, 0);
  event.kind = EventKind::kModule;
  return event;
}

// A pass of a layer takes 100 ns from `begin`: 10 for its own keys from 10 on, 20 for the others' from 30 on.
inline void attention_pass(Tracer& tracer, int rank, const std::string& layer, const std::string& suffix,
                           int64_t begin) {
  const double r = rank;
  tracer.record(attention_span(tracer, rank == 0 ? "q0 k0" + suffix : "q1 k1" + suffix, begin + 10, begin + 20, 3),
                {4, 2, 0, r, r, 3});
  if (rank == 1) tracer.record(attention_span(tracer, "q1 k0" + suffix, begin + 30, begin + 50, 4), {4, 2, 0, 1, 0, 4});
  tracer.record(module_span(tracer, layer + ".attention" + suffix, begin, begin + 60));
}

inline TraceFile attention_run() {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "cp" + std::to_string(rank));
    tracer.set_group(Axis::kCp, {0, 1});
    attention_pass(tracer, rank, "layers.0", "", 0);
    attention_pass(tracer, rank, "layers.1", "", 100);
    tracer.record(compute(tracer, "F", 0, 200, 0, 0));
    attention_pass(tracer, rank, "layers.1", " backward", 200);
    attention_pass(tracer, rank, "layers.0", " backward", 300);
    tracer.record(compute(tracer, "BW", 200, 400, 0, 0));
    tracer.record(phase(tracer, "step", 0, 400));
    ranks.push_back(tracer.take());
  }
  return file_of(std::move(ranks));
}

}  // namespace ranklab::viz::samples
