// `ranklab trace stats FILE [--step N] [--moe] [--json]`: where the time went and why, from the tables the window
// shows.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

struct TraceStatsOptions {
  std::vector<std::string> paths;
  int step = -1;  // -1: the whole trace
  bool json = false;
  bool moe = false;       // experts and their traffic instead
  int gpus_per_node = 0;  // 0: from the trace
  int rows = 10;          // of the longest idle intervals and operations
};

// Returns the exit code; throws kBadFile when no part of the file can be read, kInvalidArgument for a step that the
// trace does not have.
int trace_stats(const TraceStatsOptions& options);

}  // namespace ranklab
