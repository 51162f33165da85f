#include "lessons/sandbox.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/system.h"
#include "lessons/crash_place.h"

namespace ranklab::lesson {
namespace {

using Clock = std::chrono::steady_clock;

// The answer is framed, to distinguish a child that finished from one that exited early.
constexpr char kAnswerMark = 'A';
constexpr char kCrashMark = 'C';
int g_answer_fd = -1;  // in the child: global, because a signal handler needs it

void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the parent is gone
    data += n;
    size -= static_cast<size_t>(n);
  }
}

[[noreturn]] void answer_and_leave(const std::string& answer) {
  std::fflush(nullptr);
  const std::string framed = kAnswerMark + answer;
  write_all(g_answer_fd, framed.data(), framed.size());
  ::_exit(0);
}

// Reports which rank crashed and where, then lets the signal take its default action.
extern "C" void on_crash(int signal_number) {
  constexpr size_t kFrames = 16, kHead = 2;
  std::array<uint64_t, kFrames> frames{};
  const auto count = static_cast<size_t>(exercise_frames(frames));
  std::array<char, kHead + sizeof(frames)> note = {kCrashMark, static_cast<char>(log_rank() + 1)};
  std::memcpy(note.data() + kHead, frames.data(), count * sizeof(uint64_t));
  write_all(g_answer_fd, note.data(), kHead + count * sizeof(uint64_t));
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

// A loop that allocates memory without end gets std::bad_alloc before other programs run out of memory. The limit
// counts mapped memory, so it is not set with a sanitizer, which maps far more than it uses.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const int64_t available = available_memory_bytes();
  if (available <= 0) return;
  const auto most = static_cast<rlim_t>(available / 4 * 3);
  const rlimit data = {most, most};
  ::setrlimit(RLIMIT_DATA, &data);
#endif
}

[[noreturn]] void child_main(const std::function<std::string(const Leave&)>& body, int fd) {
  g_answer_fd = fd;
  ::setpgid(0, 0);                     // processes that it starts are ended with it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // Ctrl-C on the parent also ends the child
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  limit_memory();
  prepare_crash_place();
  ::signal(SIGINT, SIG_DFL);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal_number, on_crash);
  answer_and_leave(body(answer_and_leave));
}

enum class Reading { kClosed, kTimeUp, kInterrupted };

// Reads until the child closes its end.
Reading read_until_closed(int fd, Clock::time_point deadline, std::string& out) {
  std::array<char, 4096> buffer;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Reading::kTimeUp;
    pollfd wait_for{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait_for, 1, static_cast<int>(left));
    if (ready < 0) return Reading::kInterrupted;
    if (ready == 0) return Reading::kTimeUp;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n <= 0) return Reading::kClosed;
    out.append(buffer.data(), static_cast<size_t>(n));
  }
}

ChildResult interpret(int status, Reading reading, const std::string& text) {
  ChildResult result;
  if (!text.empty() && text[0] == kAnswerMark) {
    result.answer = text.substr(1);
  } else if (reading == Reading::kInterrupted) {
    result.end = ChildResult::End::kInterrupted;
  } else if (reading == Reading::kTimeUp) {
    result.end = ChildResult::End::kTimedOut;
  } else if (WIFSIGNALED(status)) {
    result.end = ChildResult::End::kSignalled;
    result.code = WTERMSIG(status);
    result.handler_ran = text.size() >= 2 && text[0] == kCrashMark;
    if (!result.handler_ran) return result;
    result.rank = text[1] - 1;
    result.frames.resize((text.size() - 2) / sizeof(uint64_t));
    std::memcpy(result.frames.data(), text.data() + 2, result.frames.size() * sizeof(uint64_t));
  } else {
    result.end = ChildResult::End::kExited;
    result.code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace

ChildResult run_in_child(const std::function<std::string(const Leave&)>& body, std::chrono::milliseconds limit) {
  std::array<int, 2> ends{};
  std::fflush(nullptr);
  const bool piped = ::pipe(ends.data()) == 0;
  const pid_t child = piped ? ::fork() : -1;
  RANKLAB_CHECK(child >= 0, ErrorKind::kEnvironment, .where = "lesson check", .what = "no process can be started",
                .got = std::strerror(errno), .fix = "raise the limit of processes or files (ulimit -u, ulimit -n)");
  if (child == 0) {
    ::close(ends[0]);
    child_main(body, ends[1]);
  }
  ::setpgid(child, child);  // called by parent and child, because either may be first
  ::close(ends[1]);
  std::string text;
  const Reading reading = read_until_closed(ends[0], Clock::now() + limit, text);
  if (reading != Reading::kClosed) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::kill(-child, SIGKILL);  // processes that it has left behind
  ::close(ends[0]);
  return interpret(status, reading, text);
}

}  // namespace ranklab::lesson
