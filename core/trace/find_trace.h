// What a run calls its trace, and which file a user means by one: "last" and a run's folder stand for the trace in it.
// A run that was killed, or that goes on, has only the file that it was writing, which is readable up to its last whole
// step. Reads folders of the disk. Thread rule: any thread.
#pragma once
#include <string>

namespace ranklab {

constexpr const char* kTraceFileName = "trace.json.gz";
std::string trace_path(const std::string& folder);  // of a run's folder
// Whether it is one that a run is writing, or was when it was killed: trace.json.gz.part*.
bool is_unfinished_trace(const std::string& path);

// trace_path() of runs/last for "last", of a folder, the name itself of anything else. Where a folder has no such file,
// the newest unfinished one in it, if there is one.
std::string find_trace(const std::string& named);

}  // namespace ranklab
