// What the ranks of a LaunchGroup print: shown with its rank, copied for --tee.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/launch/launch_group.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

std::string mark(int rank) { return "[rank " + std::to_string(rank) + "] "; }

// Uses one write per line, so that lines of different ranks never mix.
void write_line(int to, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(to, text.data(), text.size()) < 0) return;  // nobody reads any more, so there is nothing to do
}

}  // namespace

// RETURNS: the writing end of a pipe, or -1 if the rank writes to the terminal itself.
int LaunchGroup::open_stream(Rank& rank, Stream& stream, int local_rank, int kind) {
  const auto asked = plan_.tee.find(local_rank);
  const bool copied = asked != plan_.tee.end() && (asked->second & kind) != 0;
  stream.to = kind == kTeeOut ? STDOUT_FILENO : STDERR_FILENO;
  if (rank.number == 0 && rank.shown && !copied) return -1;  // keeps colours and the progress bar
  std::array<int, 2> ends{};
  RANKLAB_CHECK(::pipe2(ends.data(), O_CLOEXEC) == 0, ErrorKind::kEnvironment, .where = "launch",
                .what = "the system cannot create a pipe", .got = std::strerror(errno), .want = "two per rank",
                .fix = "raise the limit of open files (ulimit -n)");
  stream.from = ends[0];
  ::fcntl(stream.from, F_SETFL, O_NONBLOCK);
  if (copied) {
    const std::string path = copy_path(rank, stream);
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
    stream.copy = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    RANKLAB_CHECK(stream.copy >= 0, ErrorKind::kIo, .where = "--tee", .what = "cannot write " + quote(path),
                  .got = std::strerror(errno), .fix = "pass a folder you may write to with --log-dir");
  }
  return ends[1];
}

void LaunchGroup::read(Rank& rank, Stream& stream) {
  std::array<char, 16 << 10> buffer{};
  while (stream.from >= 0) {
    const ssize_t got = ::read(stream.from, buffer.data(), buffer.size());
    if (got < 0) return;
    if (got == 0) {
      ::close(std::exchange(stream.from, -1));
      return;
    }
    if (stream.copy >= 0) copy(rank, stream, {buffer.data(), static_cast<size_t>(got)});
    stream.partial.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end = 0; (end = stream.partial.find('\n')) != std::string::npos;) {
      show(rank, stream.to, stream.partial.substr(0, end));
      stream.partial.erase(0, end + 1);
    }
  }
}

// A full disk loses only the copy: the ranks continue, their output is still shown, and the exit code reports the loss.
void LaunchGroup::copy(const Rank& rank, Stream& stream, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(stream.copy, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const Error error(ErrorKind::kOutputLost,
                        {.where = "--tee",
                         .what = "cannot write all that rank " + std::to_string(rank.number) + " prints",
                         .got = quote(copy_path(rank, stream)) + ": " + std::strerror(errno),
                         .fix = "make room; pass another folder with --log-dir"});
      write_line(STDERR_FILENO, std::string("ranklab: error: ") + error.what());
      ::close(std::exchange(stream.copy, -1));
      copy_is_lost_ = true;
      return;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string LaunchGroup::copy_path(const Rank& rank, const Stream& stream) const {
  return plan_.log_folder + "/ranks/rank_" + std::to_string(rank.number) +
         (stream.to == STDOUT_FILENO ? ".out" : ".err");
}

void LaunchGroup::show(const Rank& rank, int to, const std::string& line) {
  if (!rank.shown) return;
  if (rank.number != 0 && line.starts_with("ranklab: error:")) {
    held_errors_.emplace_back(&rank, line);
    return;
  }
  write_line(to, (rank.number == 0 ? "" : mark(rank.number)) + line);
}

// If rank 0 fails before the others have connected to it, their errors only say that it is gone.
void LaunchGroup::show_held_errors() {
  std::set<std::string> seen;
  const Rank& first = ranks_.front();
  const bool first_failed = first.exit_code > 0 && first.exit_code < 128;
  for (const auto& [rank, line] : held_errors_) {
    const bool lost_first = plan_.trains && first_failed && rank->exit_code == exit_code(ErrorKind::kCommunication);
    const bool said = first.number == 0 && first.shown && (first.exit_code == rank->exit_code || lost_first);
    if (!said && seen.insert(line).second) write_line(STDERR_FILENO, mark(rank->number) + line);
  }
}

}  // namespace ranklab
