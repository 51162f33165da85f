// A stage script as JSON for the page's program: intervals as flat arrays of numbers, times in ns since the step's
// begin, colours and names beside them. Cost: about 30 bytes per interval. Thread rule: pure.
#pragma once
#include <string>

#include "viz/model/stage/script.h"

namespace ranklab::viz {

// `open_ns`: where the page opens, a time of the trace. Valid UTF-8, whatever the trace's texts are.
std::string page_data(const TraceStore& store, const StageScript& script, int64_t open_ns);

}  // namespace ranklab::viz
