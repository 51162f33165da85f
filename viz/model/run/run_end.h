// Describes how a run ended if it did not end well: with an error, a sentinel, a signal, or a loss that is not finite
// any more. Uses its record run.json and its curves. Cost: O(points). Thread rule: pure, except for the file.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "viz/model/curves.h"
#include "viz/model/run/run_record.h"

namespace ranklab::viz {

struct RunEnd {
  std::string words;    // "the run ended with an error: ..."; "": it ended well, or its end is not known
  bool failed = false;  // false: it was interrupted, or its end is not recorded
  int step = -1;        // the unfinished step, or the first step whose loss is not finite; -1: not known
};

RunEnd failed_run(const std::string& error, int step = -1);
RunEnd run_end(const std::optional<RunRecord>& record, const std::vector<Curve>& curves);
// For the run whose files are next to the trace. Files that cannot be read are ignored.
RunEnd run_end_beside(const TraceStore& store);

}  // namespace ranklab::viz
