// Reads back what write_chrome_trace() wrote, field for field. Files laid out as our writer does are read line by line
// (chrome_line.h), at about 0.5 us per event; any other JSON text with the same content by a general parser, ten times
// slower. Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "core/trace/event.h"
#include "core/trace/lanes.h"

namespace ranklab {

struct TraceFile {
  std::vector<RankTrace> ranks;
  TraceClock clock = TraceClock::kVirtual;
  int schema_version = 0;
  int world_size = 0;
  int gpus_per_node = 0;   // 0: unknown
  std::string title = {};  // model and layout, for people; "" in older traces
};

// Throws kIo if it cannot be opened, and kBadFile if it is not JSON, is truncated, has another schema version, or was
// written by another program.
TraceFile read_chrome_trace(const std::string& path);

// The valid beginning of a file: what a viewer shows of a trace that was cut off or damaged.
struct TracePrefix {
  TraceFile file;
  std::string broken;  // where and why reading ended; "" when the file is whole
};
// Throws kIo, only when the file cannot be opened.
TracePrefix read_trace_prefix(const std::string& path);

// Uses only the general parser, for tests; the result is the same as that of read_chrome_trace().
TraceFile read_chrome_trace_slowly(const std::string& path);

}  // namespace ranklab
