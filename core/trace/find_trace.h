// Which file a user means by a trace: "last" and a run's folder stand for the trace in it. A run that was killed, or
// that goes on, has only the file that it was writing, which is readable up to its last whole step. Reads folders of
// the disk. Thread rule: any thread.
#pragma once
#include <string>

namespace ranklab {

// runs/last/trace.json.gz of "last", trace.json.gz of a folder, the name itself of anything else. Where a folder has no
// trace.json.gz, the newest trace.json.gz.part* in it, if there is one.
std::string find_trace(const std::string& named);

}  // namespace ranklab
