// Reads back what write_chrome_trace() wrote, field for field. Thread rule: one thread.
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
};

// Throws kBadFile: not readable, not JSON, cut off, another schema version, or written by another program.
TraceFile read_chrome_trace(const std::string& path);

}  // namespace ranklab
