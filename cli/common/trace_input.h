// The trace that a command reads in full. A run that was killed, or that goes on, has only the file that it was
// writing: what that holds so far is read, and where it ends is told. Any other file must be whole. Thread rule: one
// thread.
#pragma once
#include <string>

#include "core/trace/chrome_reader.h"

namespace ranklab {

// `path` as find_trace() gives it. Throws kIo where it cannot be opened, kBadFile where no event can be read.
TracePrefix read_trace_input(const std::string& path);

}  // namespace ranklab
