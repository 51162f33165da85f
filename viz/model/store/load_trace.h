// Opens any supported file: our Chrome JSON (if it is truncated or damaged, the readable part with a warning), PyTorch
// profiler's Chrome JSON (one file, or several with one rank each), a schedule's CSV. Thread rule: one thread.
#pragma once
#include <span>
#include <string>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// "last" and a folder are resolved by find_trace(). Throws kIo if the file cannot be opened, kBadFile if no part of it
// can be shown.
TraceStore load_trace(const std::string& path);
// Throws what load_trace() throws if the file is missing, unreadable or not a regular file.
void require_trace_file(const std::string& path);
// Several files must be the ranks of one PyTorch job.
TraceStore load_traces(std::span<const std::string> paths);

}  // namespace ranklab::viz
