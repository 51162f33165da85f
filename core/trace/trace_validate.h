// Is a trace file what it claims to be? Checks the file's schema, that slices of a track nest, that times run forward,
// that arrows have two ends, and that every collective is on all its members with the same number, verb and (on the
// virtual clock) times. An empty answer means a sound file. Cost: reads the file twice. Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "core/trace/chrome_reader.h"

namespace ranklab {

// One line a problem, at most `limit` lines and then one that counts the rest. Throws kBadFile when it is no JSON at
// all.
std::vector<std::string> validate_trace_file(const std::string& path, size_t limit = 50);

// The parts, for tests and for traces in memory.
std::vector<std::string> validate_chrome_events(const std::string& path);  // schema, nesting, arrows
std::vector<std::string> validate_calls(const TraceFile& file);            // order of times, members of collectives

}  // namespace ranklab
