#include "cli/common/interrupt.h"

#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/files/unfinished_path.h"

namespace ranklab {
namespace {

// The program must be gone two seconds after a signal. The rest of this time is for notifying others, and for the
// kernel, which takes some tenths of a second to reclaim gigabytes.
std::atomic<std::chrono::milliseconds> g_patience{std::chrono::milliseconds(1'200)};

// Launchers forward a signal that the terminal has already sent to the whole group; two signals this close together
// count as one.
constexpr int64_t kEchoNs = 300'000'000;

std::atomic<int> g_signal{0};
std::atomic<int64_t> g_since_ns{0};
sem_t g_wake;

std::mutex g_notify_mutex;
std::function<void(const std::string&)> g_notify;

// Does not wait longer than 0.3 s, because the receiver may be as stuck as this process.
void tell(const std::string& why) {
  std::function<void(const std::string&)> notify;
  {
    const std::lock_guard lock(g_notify_mutex);
    notify = g_notify;
  }
  if (!notify) return;
  std::promise<void> finished;
  std::future<void> end = finished.get_future();
  std::thread([notify, why, finished = std::move(finished)]() mutable {
    notify(why);
    finished.set_value();
  }).detach();
  end.wait_for(std::chrono::milliseconds(300));
}

int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::atomic<int> g_ctrl_c_pipe{-1};

void interrupt_by(int signal) {
  int none = 0;
  if (g_signal.compare_exchange_strong(none, signal)) {
    g_since_ns = monotonic_ns();
    sem_post(&g_wake);
  } else if (g_since_ns != 0 && monotonic_ns() - g_since_ns > kEchoNs) {
    ::_exit(interrupt_exit_code());
  }
}

void on_signal(int signal) {
  // When a terminal closes, both the shell and the kernel send SIGHUP, so it never counts as a second signal.
  if (signal == SIGHUP) return g_signal != 0 ? void() : interrupt_by(SIGTERM);
  // All that is printed from now on raises it again.
  if (signal == SIGPIPE) return g_signal != 0 ? void() : interrupt_by(SIGPIPE);
  const int pipe_fd = g_ctrl_c_pipe;
  if (signal != SIGINT || pipe_fd < 0) return interrupt_by(signal);
  const int saved = errno;
  if (::write(pipe_fd, "c", 1) != 1) interrupt_by(signal);  // pipe is full: nobody reads it any more
  errno = saved;
}

// After it the signal ends the process as if there had been no handler: SA_RESETHAND.
void remove_and_end(int signal) {
  remove_unfinished();
  static_cast<void>(std::raise(signal));
}

}  // namespace

void leave_nothing_unfinished() {
  struct sigaction action {};
  action.sa_handler = remove_and_end;
  action.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // Ignored ones stay ignored: nohup, and a shell's background jobs.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      ::sigaction(signal, &action, nullptr);
  }
}

void take_ctrl_c(int pipe_fd) { g_ctrl_c_pipe = pipe_fd; }

void interrupt_run() { interrupt_by(SIGINT); }

void watch_interrupts() {
  sem_init(&g_wake, 0, 0);
  std::thread([] {
    while (sem_wait(&g_wake) != 0) continue;
    const std::chrono::milliseconds patience = g_patience;
    std::this_thread::sleep_for(patience);
    std::fprintf(stderr, "ranklab: interrupted; the work in progress did not end within %.1f s and is abandoned\n",
                 static_cast<double>(patience.count()) * 1e-3);
    tell("interrupted, and left in the middle of a step");
    ::_exit(interrupt_exit_code());
  }).detach();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  for (const int signal : {SIGHUP, SIGPIPE})
    if (std::signal(signal, on_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
}

void notify_before_exit(std::function<void(const std::string& why)> tell) {
  const std::lock_guard lock(g_notify_mutex);
  g_notify = std::move(tell);
}

void give_interrupts(std::chrono::milliseconds patience) { g_patience = patience; }

bool interrupt_requested() { return g_signal != 0; }

void stop_if_interrupted() {
  if (interrupt_requested())
    throw Error(ErrorKind::kInterrupted, {.where = "ranklab", .what = "interrupted", .fix = "run it again"});
}

bool is_caused_by_interrupt(const Error& error) {
  const bool lost_a_peer = error.kind() == ErrorKind::kCommunication || error.kind() == ErrorKind::kTimeout;
  return error.kind() == ErrorKind::kInterrupted || (lost_a_peer && interrupt_requested());
}

void exit_if_caused_by_interrupt(const Error& error) {
  if (is_caused_by_interrupt(error)) ::_exit(interrupt_exit_code());
}

bool reader_is_gone() { return g_signal == SIGPIPE; }

int interrupt_exit_code() { return 128 + (g_signal != 0 ? g_signal.load() : SIGTERM); }

}  // namespace ranklab
