#include "cli/debug/debug_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/common/interrupt.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr int kTickMs = 50;
constexpr size_t kLongestLine = 4096;

}  // namespace

DebugInput::DebugInput() : interactive_(::isatty(STDIN_FILENO) != 0) {
  RANKLAB_CHECK(::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0, ErrorKind::kIo, .where = "ranklab debug",
                .what = "the system cannot create a pipe", .got = std::strerror(errno),
                .fix = "raise the limit of open files (ulimit -n)");
  take_ctrl_c(pipe_[1]);
}

DebugInput::~DebugInput() {
  take_ctrl_c(-1);
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

bool DebugInput::ctrl_c() {
  std::array<char, 16> bytes{};
  return ::read(pipe_[0], bytes.data(), bytes.size()) > 0;
}

std::optional<std::string> DebugInput::line_in_buffer() {
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos && !(ended_ && !buffer_.empty())) return std::nullopt;
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

// RETURNS: false on Ctrl-C, or if the run is about to end.
bool DebugInput::wait_for_input() {
  std::array<pollfd, 2> ready = {{{STDIN_FILENO, POLLIN, 0}, {pipe_[0], POLLIN, 0}}};
  for (;;) {
    const int count = ::poll(ready.data(), ready.size(), kTickMs);
    if (interrupt_requested() || (count > 0 && ready[1].revents != 0)) return false;
    if (count > 0 && ready[0].revents != 0) return true;
  }
}

std::optional<std::string> DebugInput::next_line() {
  if (interactive_) {
    std::fputs("(ranklab) ", stdout);
    std::fflush(stdout);
  }
  for (;;) {
    if (auto line = line_in_buffer()) return line;
    if (ended_ || !wait_for_input()) return std::nullopt;
    std::array<char, 1024> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) ended_ = true;
    if (count > 0) buffer_.append(bytes.data(), static_cast<size_t>(count));
    // A line without an end is not a command; its beginning is then rejected as one.
    if (buffer_.size() > kLongestLine && buffer_.find('\n') == std::string::npos) buffer_.back() = '\n';
  }
}

}  // namespace ranklab
