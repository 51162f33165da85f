// A benchmark in a process of its own, so that none inherits another's memory, threads or warm caches.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ranklab {

// Runs a command, RETURNS its last output line that is a JSON object; BENCH_T0 tells it when it was launched. `where`:
// whose row it is, for errors. Throws kCheckFailed with the end of the output.
nlohmann::json run_bench_process(const std::string& where, const std::string& command);

}  // namespace ranklab
