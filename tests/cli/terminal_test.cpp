// Colours and cursor moves are for terminals that people look at. mpirun gives each rank a terminal of its own, also
// when what it shows goes into a file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;
using testing::Not;

// What `script` writes on a terminal of its own. `rank`: a variable that its shell finds, as a launcher's process does.
std::string on_a_terminal(const std::string& script, const char* rank = nullptr) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::setenv("TERM", "xterm", 1);
    for (const char* name : {"NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}) ::unsetenv(name);
    if (rank != nullptr) ::setenv(rank, "0", 1);
    ::execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {  // EIO: everybody who had the terminal is gone
    const ssize_t got = ::read(terminal, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return text;
}

const std::string kList = "'" RANKLAB_PROGRAM "' topo --world-size 4 --tp 2";

TEST(Terminal, IsColouredUnlessSomethingSaysOtherwise) {
  EXPECT_THAT(on_a_terminal(kList), HasSubstr("\033["));
  for (const char* plain : {"NO_COLOR=1 ", "TERM=dumb ", "CLICOLOR=0 "})
    EXPECT_THAT(on_a_terminal(plain + kList), Not(HasSubstr("\033["))) << plain;
  EXPECT_THAT(run_command(kList).output, Not(HasSubstr("\033[")));
}

// The test's own process stands for the launcher: its stdout is no terminal.
TEST(Terminal, ARankWhoseLauncherWritesElsewhereIsPlain) {
  if (::isatty(STDOUT_FILENO) != 0) GTEST_SKIP() << "run it with its output in a file";
  for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    const std::string text = on_a_terminal(kList + "; true", rank);
    EXPECT_THAT(text, HasSubstr("rank")) << rank;
    EXPECT_THAT(text, Not(HasSubstr("\033["))) << rank;
    EXPECT_THAT(on_a_terminal(kList + " --color always; true", rank), HasSubstr("\033[")) << rank;
  }
}

// The launcher's own output is the terminal, and it starts its ranks through a shell.
TEST(Terminal, ARankWhoseLauncherWritesToATerminalIsColoured) {
  const std::string text =
      on_a_terminal("bash -c \"export PMI_RANK=0; bash -c \\\"" + kList + "; true\\\"; true\"; true");
  EXPECT_THAT(text, HasSubstr("\033["));
}

TEST(Terminal, UnderMpirunIntoAFileNothingIsColoured) {
  if (run_command("command -v mpirun").exit_code != 0) GTEST_SKIP() << "no mpirun (apt-get install openmpi-bin)";
  const Outcome run = run_command(
      "export TERM=xterm OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; mpirun --oversubscribe -n 1 " +
      kList + " 2>&1 | cat");
  EXPECT_THAT(run.output, HasSubstr("rank")) << run.output;
  EXPECT_THAT(run.output, Not(HasSubstr("\033["))) << run.output;
}

}  // namespace
}  // namespace ranklab
