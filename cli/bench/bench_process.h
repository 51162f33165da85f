// A benchmark in a separate process, so that none inherits another's memory, threads or warm caches.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ranklab {

// Runs a command, RETURNS the last JSON object line of its output; BENCH_T0 gives it its launch time. `where`: whose
// row it is, for errors. Throws kCheckFailed with the end of the output.
nlohmann::json run_bench_process(const std::string& where, const std::string& command);

}  // namespace ranklab
