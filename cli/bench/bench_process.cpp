#include "cli/bench/bench_process.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

nlohmann::json run_bench_process(const std::string& where, const std::string& command) {
  const double launch_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string line = strprintf("BENCH_T0=%.6f TORCH_CPP_LOG_LEVEL=ERROR %s 2>&1", launch_s, command.c_str());
  FILE* pipe = ::popen(line.c_str(), "r");
  RANKLAB_CHECK(pipe != nullptr, ErrorKind::kIo, .where = where, .what = "cannot start a process", .got = command,
                .fix = "free memory, or raise the limit of processes (ulimit -u)");
  std::string output;
  std::array<char, 4096> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  const size_t begin = output.rfind("\n{") == std::string::npos ? output.find('{') : output.rfind("\n{") + 1;
  RANKLAB_CHECK(status == 0 && begin != std::string::npos, ErrorKind::kCheckFailed, .where = where,
                .what = "a row failed",
                .got = "exit " + std::to_string(WEXITSTATUS(status)) + ": " +
                       output.substr(output.size() - std::min<size_t>(output.size(), 400)),
                .fix = "run it by hand: " + command);
  return nlohmann::json::parse(output.substr(begin, output.find('\n', begin) - begin));
}

}  // namespace ranklab
