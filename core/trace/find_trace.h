// How a run names its trace, and which file a user means: "last", or the name of a run's folder, stands for the trace
// in it. A run that was killed, or is still running, has only the file that it was writing, which is readable up to its
// last whole step. Reads folders. Thread rule: any thread.
#pragma once
#include <string>

namespace ranklab {

constexpr const char* kTraceFileName = "trace.json.gz";
std::string trace_path(const std::string& folder);  // the trace in a run's folder
// Whether this is the trace of a running or killed run: trace.json.gz.part*.
bool is_unfinished_trace(const std::string& path);

// For "last", trace_path() of runs/last; for a folder, its trace_path(); for anything else, the name itself. If a
// folder has no finished trace, the newest unfinished one in it, if there is one.
std::string find_trace(const std::string& named);

}  // namespace ranklab
