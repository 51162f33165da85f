// Colours and cursor moves are for terminals that people look at. mpirun gives each rank a terminal of its own, also
// when what it shows goes into a file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <regex>
#include <sstream>
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

const std::string kList = "'" RANKLAB_BINARY "' topo --world-size 4 --tp 2";

TEST(Terminal, IsColouredUnlessSomethingSaysOtherwise) {
  EXPECT_THAT(on_a_terminal(kList), HasSubstr("\033["));
  for (const char* plain : {"NO_COLOR=1 ", "TERM=dumb ", "CLICOLOR=0 "})
    EXPECT_THAT(on_a_terminal(plain + kList), Not(HasSubstr("\033["))) << plain;
  EXPECT_THAT(run_command(kList).output, Not(HasSubstr("\033[")));
}

std::vector<std::string> lines_shown(std::string text) {
  std::erase(text, '\r');
  text = std::regex_replace(text, std::regex("\033\\[[0-9;]*m"), "");
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int display_columns(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Rows stay below each other, and no line is broken by the terminal.
TEST(Terminal, TablesAreAlignedThereAndMarkdownElsewhere) {
  for (const char* list : {"list recipes", "list backends", "list presets", "schedule list"}) {
    const std::string command = std::string("'" RANKLAB_BINARY "' ") + list;
    for (const int columns : {80, 110}) {
      const std::vector<std::string> lines =
          lines_shown(on_a_terminal("COLUMNS=" + std::to_string(columns) + " " + command));
      ASSERT_GT(lines.size(), 3u) << list;
      for (const std::string& line : lines) {
        EXPECT_LE(display_columns(line), columns) << line;
        EXPECT_EQ(line.find_first_of("|`"), std::string::npos) << line;
      }
    }
    EXPECT_THAT(run_command(command).output, testing::StartsWith("| ")) << list;
  }
  // Numbers end below each other.
  const std::vector<std::string> presets = lines_shown(on_a_terminal("COLUMNS=100 '" RANKLAB_BINARY "' list presets"));
  EXPECT_THAT(presets, testing::Contains("gpt_tiny            4 x 128               128                  870k"));
  EXPECT_THAT(presets, testing::Contains("deepseek_v3         61 x 7168            4096   671B (37.6B active)"));
}

TEST(Terminal, ErrorsAreWrappedThereAndOneLineElsewhere) {
  const std::string command = "'" RANKLAB_BINARY "' train --tp 3";
  const std::vector<std::string> lines = lines_shown(on_a_terminal("COLUMNS=60 " + command));
  ASSERT_GT(lines.size(), 2u);
  std::string together = lines[0];
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_LE(display_columns(lines[i]), 60) << lines[i];
    if (i == 0) continue;
    EXPECT_EQ(lines[i].substr(0, 2), "  ");
    together += lines[i].substr(1);
  }
  EXPECT_EQ(together + "\n", run_command(command + " 2>&1 >/dev/null").output);
}

// A progress bar that the terminal broke into two lines would remain: clearing it removes one line.
TEST(Terminal, TheProgressBarFitsIntoALine) {
  const std::string train =
      " '" RANKLAB_BINARY
      "' train --mock-data --ranks 1 --num-layers 1 --hidden-size 16 --ffn-hidden-size 32 --num-attention-heads 2 "
      "--seq-length 16 --gbs 2 --train-iters 120 --log-interval 100 --eval-interval 0 --sample-tokens 0 --no-trace "
      "--log-dir " +
      temporary_path("bar");
  for (const int columns : {30, 40, 90}) {
    std::istringstream in(on_a_terminal("COLUMNS=" + std::to_string(columns) + train));
    int bars = 0;
    for (std::string piece; std::getline(in, piece, '\r');) {
      if (piece.find("s left") == std::string::npos) continue;
      ++bars;
      EXPECT_LT(display_columns(piece), columns) << piece;
    }
    EXPECT_GT(bars, 50) << columns;
  }
}

// The test's own process takes the launcher's role: its stdout is not a terminal.
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
