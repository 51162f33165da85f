// A run's folder (core/runtime/record/run_log.h, trace_file.h) as reports read it: each file that exists, and as much
// of it as can be read. Cost: that of the trace (trace_store.h). Thread rule: one thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "viz/model/run/fired_sentinels.h"
#include "viz/model/run/metric_lines.h"
#include "viz/model/run/run_record.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct RunFiles {
  std::string folder;
  std::optional<RunRecord> record;  // runs of older versions have none
  std::vector<Curve> curves;        // from metrics.jsonl, thinned
  FiredSentinels sentinels;
  std::optional<TraceStore> trace;
  std::vector<std::string> problems;  // what could not be read, and why

  const Curve* curve(const std::string& name) const;  // null: no such curve, or without finite values
  std::string title() const;                          // model and layout, else the folder's name
};

// `path`: the folder, "last" for runs/last, or a file of it; a trace with a name of its own is read alone. Throws kIo
// if the path contains no data of a run.
RunFiles read_run(const std::string& path);
// The files that read_run() may read, which a report must not overwrite.
std::vector<std::string> files_of_run(const std::string& path);

}  // namespace ranklab::viz
