// How a run ended that did not end well, in words: an error, a sentinel, a signal, or a loss that is no number any
// more. From its record run.json and its curves. Cost: O(points). Thread rule: pure, except for the file.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "viz/model/curves.h"
#include "viz/model/run/run_record.h"

namespace ranklab::viz {

struct RunEnd {
  std::string words;    // "the run ended with an error: ..."; "": it ended well, or nothing is known of its end
  bool failed = false;  // false: it was interrupted, or its end is not recorded
  int step = -1;        // the step that was not finished, or from which on the loss is no number; -1: not known
};

RunEnd failed_run(const std::string& error, int step = -1);
RunEnd run_end(const std::optional<RunRecord>& record, const std::vector<Curve>& curves);
// Of the run whose files lie beside the trace. What cannot be read says nothing.
RunEnd run_end_beside(const TraceStore& store);

}  // namespace ranklab::viz
