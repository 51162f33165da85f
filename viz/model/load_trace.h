// Any file a viewer is given: our Chrome JSON (also cut off or damaged: the readable part with a warning), PyTorch
// profiler's Chrome JSON (one file or several, one a rank), a schedule's CSV. Thread rule: one thread.
#pragma once
#include <span>
#include <string>

#include "viz/model/trace_store.h"

namespace ranklab::viz {

// "last" is runs/last/trace.json.gz; a folder is its trace.json.gz. Throws kBadFile when not even a part is readable.
TraceStore load_trace(const std::string& path);
// Several files are the ranks of one PyTorch job.
TraceStore load_traces(std::span<const std::string> paths);

}  // namespace ranklab::viz
