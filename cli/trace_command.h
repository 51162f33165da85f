// `ranklab trace info FILE [--json]` and `ranklab trace validate FILE`. Both print to stdout and return the exit code;
// a file that cannot be read throws kBadFile.
#pragma once
#include <string>

namespace ranklab {

// Where each rank's time went, and the traffic by axis and verb.
int trace_info(const std::string& path, bool json);
// 0 when the file is sound, else one line a problem and the exit code of a failed check.
int trace_validate(const std::string& path);

}  // namespace ranklab
