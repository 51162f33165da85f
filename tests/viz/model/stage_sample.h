// A step of two pipeline ranks by hand, of one microbatch: r0 forwards it 0..100, sends activations 100..110, r1 works
// on it until 300 and sends gradients 300..310, r0 ends at 400. r0 waits 100..310, r1 0..110 and from 300 on.
#pragma once
#include <string>
#include <vector>

#include "tests/viz/model/make_trace.h"

namespace ranklab::viz::samples {

inline TraceFile one_microbatch(int gpus_per_node = 1) {
  std::vector<RankTrace> ranks;
  for (const int rank : {0, 1}) {
    Tracer tracer(rank, "pp" + std::to_string(rank));
    tracer.set_group(Axis::kPp, {0, 1});
    const auto message = [&](bool sends, int64_t posted, int64_t begin, int64_t waited, int64_t exposed, int tag) {
      Event event = call(tracer, {.axis = Axis::kPp,
                                  .verb = sends ? Verb::kSend : Verb::kRecv,
                                  .posted = posted,
                                  .begin = begin,
                                  .end = begin + 10,
                                  .exposed = exposed,
                                  .peer_wait = waited,
                                  .logical = 1024,
                                  .algorithm = 1024,
                                  .peer = 1 - rank,
                                  .tag = tag,
                                  .dtype = DType::kBFloat16});
      event.microbatch = 0;
      tracer.record(event);
    };
    if (rank == 0) {
      tracer.record(counter(tracer, "memory/parameters", 0, 600));
      tracer.record(counter(tracer, "memory/activations", 50, 400));
      tracer.record(counter(tracer, "memory/limit", 0, 2000));
      tracer.record(compute(tracer, "F", 0, 100, 0, 0, 0));
      message(true, 100, 100, 0, 0, 1);
      message(false, 100, 300, 200, 10, 2);
      tracer.record(compute(tracer, "BW", 310, 400, 0, 0, 0));
    } else {
      message(false, 0, 100, 100, 10, 1);
      Event module = compute(tracer, "layers.2.mlp", 120, 200, 0, 0, 1);
      module.kind = EventKind::kModule;
      tracer.record(module);
      tracer.record(compute(tracer, "F", 110, 210, 0, 0, 1));
      tracer.record(compute(tracer, "BW", 210, 300, 0, 0, 1));
      message(true, 300, 300, 0, 0, 2);
    }
    ranks.push_back(tracer.take());
  }
  TraceFile file = file_of(std::move(ranks));
  file.gpus_per_node = gpus_per_node;
  return file;
}

}  // namespace ranklab::viz::samples
