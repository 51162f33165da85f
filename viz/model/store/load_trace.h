// Opens any supported file: our Chrome JSON (also truncated or damaged: the readable part with a warning), PyTorch
// profiler's Chrome JSON (one file, or several with one rank each), a schedule's CSV. Thread rule: one thread.
#pragma once
#include <span>
#include <string>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// "last" and a folder mean what find_trace() finds. Throws kIo when it cannot be opened, kBadFile when no part
// of it can be shown.
TraceStore load_trace(const std::string& path);
// Throws what load_trace() throws where the file is missing, unreadable or no regular file.
void require_trace_file(const std::string& path);
// Several files are the ranks of one PyTorch job.
TraceStore load_traces(std::span<const std::string> paths);

}  // namespace ranklab::viz
