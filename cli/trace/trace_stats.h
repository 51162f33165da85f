// `ranklab trace stats FILE [--step N] [--moe] [--json]`: where the time was spent and why, from the same tables as in
// the window.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

struct TraceStatsOptions {
  std::vector<std::string> paths;
  int step = -1;  // -1: the whole trace
  bool json = false;
  bool moe = false;       // show experts and their traffic instead
  int gpus_per_node = 0;  // 0: as the trace says
  int rows = 10;          // number of longest idle intervals and operations to show
};

// RETURNS: the exit code. Throws kBadFile if no part of the file can be read, kInvalidArgument for a step that the
// trace does not have.
int trace_stats(const TraceStatsOptions& options);

}  // namespace ranklab
