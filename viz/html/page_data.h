// A stage script as JSON for the page's program: intervals are flat arrays of numbers, times are ns since the step's
// begin, colours and names are separate lists. Cost: about 30 bytes per interval. Thread rule: pure.
#pragma once
#include <string>

#include "viz/model/stage/script.h"

namespace ranklab::viz {

// `open_ns`: the time of the trace at which the page opens. The result is valid UTF-8, whatever texts the trace
// contains.
std::string page_data(const TraceStore& store, const StageScript& script, int64_t open_ns);

}  // namespace ranklab::viz
