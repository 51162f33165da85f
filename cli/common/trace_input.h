// The trace of a command that reads all of it. A run that was killed, or that is still running, has only the file that
// it was writing: then everything up to the end of that file is read, and the command says where it ends. Any other
// file must be complete. Thread rule: one thread.
#pragma once
#include <string>

#include "core/trace/chrome_reader.h"

namespace ranklab {

// `path`: as find_trace() returns it. Throws kIo if the file cannot be opened, kBadFile if no event can be read.
TracePrefix read_trace_input(const std::string& path);

}  // namespace ranklab
