// Runs a benchmark in a separate process, so that it inherits no memory, threads or warm caches from another one.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ranklab {

// Runs a command. RETURNS: the last JSON object line of its output. The environment variable BENCH_T0 tells the command
// when it was launched. `where`: names the row in errors. Throws kCheckFailed with the end of the output.
nlohmann::json run_bench_process(const std::string& where, const std::string& command);

}  // namespace ranklab
