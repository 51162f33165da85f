// A small sound trace: two ranks that compute, all-reduce, and pass a message from rank 0 to rank 1.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/trace/event.h"
#include "core/trace/tracer.h"

namespace ranklab::trace_samples {

inline Event compute(Tracer& tracer, const std::string& name, int64_t begin, int64_t end) {
  Event event;
  event.kind = EventKind::kCompute;
  event.name = tracer.intern(name);
  event.virtual_begin_ns = begin;
  event.virtual_end_ns = end;
  event.wall_begin_ns = 10 * begin;
  event.wall_end_ns = 10 * end;
  return event;
}

inline Event collective(Tracer& tracer, Axis axis, Verb verb, int64_t sequence, int64_t begin, int64_t end) {
  Event event = compute(tracer, std::string(name(verb)), begin, end);
  event.kind = EventKind::kCollective;
  event.axis = axis;
  event.verb = verb;
  event.dtype = DType::kFloat32;
  event.sequence = sequence;
  event.virtual_posted_ns = event.virtual_matched_ns = begin;
  event.virtual_first_byte_ns = begin + 1;
  event.logical_bytes = 4096;
  event.algorithm_bytes = 4096;
  event.wire_bytes = 2048;
  return event;
}

inline Event counter(Tracer& tracer, const std::string& name, int64_t at, double value) {
  Event event;
  event.kind = EventKind::kCounter;
  event.name = tracer.intern(name);
  event.virtual_begin_ns = at;
  event.value = value;
  return event;
}

inline RankTrace sample_rank(int rank) {
  Tracer tracer(rank, "dp" + std::to_string(rank));
  tracer.set_group(Axis::kDp, {0, 1});
  tracer.set_group(Axis::kPp, {0, 1});
  tracer.set_step(3);
  tracer.record(compute(tracer, "F", 0, 1500));
  Event reduce = collective(tracer, Axis::kDp, Verb::kAllReduce, 0, 1500, 2501);
  reduce.virtual_exposed_ns = 1001;
  tracer.record(reduce);
  Event message = collective(tracer, Axis::kPp, rank == 0 ? Verb::kSend : Verb::kRecv, 0, 2600, 2700);
  message.peer = 1 - rank;
  tracer.record(message);
  tracer.record(counter(tracer, "memory/parameters", 2700, 1024));
  tracer.record(counter(tracer, "loss", 2700, 5.5));
  Event instant;
  instant.name = tracer.intern("validation");
  instant.virtual_begin_ns = 2800;
  tracer.record(instant);
  return tracer.take();
}

inline std::vector<RankTrace> sample_traces() { return {sample_rank(0), sample_rank(1)}; }

// A path of its own for each test, removed at the end.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& name)
      : path_(::testing::TempDir() + std::to_string(::getpid()) + "_" + name) {}
  ~TemporaryPath() { std::filesystem::remove(path_); }
  operator const std::string&() const { return path_; }  // NOLINT: reads as a path
  const std::string& str() const { return path_; }

  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

 private:
  std::string path_;
};

}  // namespace ranklab::trace_samples
