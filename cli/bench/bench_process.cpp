#include "cli/bench/bench_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Runs between fork and exec: only async-signal-safe calls. Whoever ends the benchmark must also end its row, because a
// signal to one process, unlike a Ctrl-C in a terminal, reaches no other process.
[[noreturn]] void become_row(const char* line, int out, int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execl("/bin/sh", "sh", "-c", line, nullptr);
  ::_exit(127);
}

struct Ended {
  int status = -1;
  std::string output = {};
};

// RETURNS: status -1 if the system cannot create a process.
Ended run_to_its_end(const std::string& line) {
  Ended ended;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return ended;
  const int parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become_row(line.c_str(), ends[1], parent);
  const int reason = errno;
  ::close(ends[1]);
  std::array<char, 4096> buffer;
  for (ssize_t n = 0; (n = ::read(ends[0], buffer.data(), buffer.size())) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) ended.output.append(buffer.data(), static_cast<size_t>(n));
  ::close(ends[0]);
  errno = reason;
  if (child < 0) return ended;
  while (::waitpid(child, &ended.status, 0) < 0 && errno == EINTR) continue;
  return ended;
}

}  // namespace

nlohmann::json run_bench_process(const std::string& where, const std::string& command) {
  const double launch_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  // With `exec` no shell stays in between, which would otherwise be the process that ends with this one.
  const auto [status, output] =
      run_to_its_end(strprintf("exec env BENCH_T0=%.6f TORCH_CPP_LOG_LEVEL=ERROR %s", launch_s, command.c_str()));
  RANKLAB_CHECK(status != -1, ErrorKind::kIo, .where = where, .what = "cannot start a process", .got = command,
                .fix = "free memory, or raise the limit of processes (ulimit -u)");
  const size_t begin = output.rfind("\n{") == std::string::npos ? output.find('{') : output.rfind("\n{") + 1;
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  RANKLAB_CHECK(status == 0 && begin != std::string::npos, ErrorKind::kCheckFailed, .where = where,
                .what = "a row failed",
                .got = "exit " + std::to_string(code) + ": " +
                       output.substr(output.size() - std::min<size_t>(output.size(), 400)),
                .fix = "run it by hand: " + command);
  return nlohmann::json::parse(output.substr(begin, output.find('\n', begin) - begin));
}

}  // namespace ranklab
