// Validates a trace file: its schema, that slices of a track nest, that times are monotonic, that arrows have two ends,
// and that every collective appears on all its members with the same number, verb and (on the virtual clock) times. An
// empty result means that the file is valid. Cost: reads the file twice. Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "core/trace/chrome_reader.h"

namespace ranklab {

// One line per problem, at most `limit` lines, followed by one with the number of further problems. Throws kBadFile
// when the file is not JSON at all.
std::vector<std::string> validate_trace_file(const std::string& path, size_t limit = 50);

// The individual checks, for tests and for traces in memory.
std::vector<std::string> validate_chrome_events(const std::string& path);  // schema, nesting, arrows
std::vector<std::string> validate_calls(const TraceFile& file);            // order of times, members of collectives

}  // namespace ranklab
