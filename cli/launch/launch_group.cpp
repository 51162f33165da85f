#include "cli/launch/launch_group.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "cli/world/make_world.h"
#include "core/base/error.h"

extern char** environ;

namespace ranklab {
namespace {

using std::chrono::milliseconds;

// After a rank failed, the coordinator notifies the other ranks, which end by themselves; those that do not are sent a
// signal, then killed. After a Ctrl-C ranks finish their step.
constexpr milliseconds kAskAfterFailure{200};
constexpr milliseconds kKillAfterFailure{400};
constexpr milliseconds kKillAfterSignal{1'700}, kKillAfterSaving{62'000};
// Any other program may save its work when it is asked to end; torchrun gives it as long.
constexpr milliseconds kKillOthersPrograms{30'000};
// A stopped rank cannot finish its step, nor can the others without it; once it is killed, they notice and leave.
constexpr milliseconds kKillStopped{400}, kKillAfterLoss{2'500};
constexpr milliseconds kWatchTick{50};

sigset_t launcher_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);  // nohup: a signalfd also gets ignored signals
  return set;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!extra.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : extra) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Exit codes after which there is nothing to repeat: an output was lost, or a sentinel or a signal (to any rank, on any
// node) ended all ranks.
bool ends_a_training(int code) {
  return code == exit_code(ErrorKind::kOutputLost) || code == exit_code(ErrorKind::kSentinel) || code == 128 + SIGINT ||
         code == 128 + SIGPIPE || code == 128 + SIGTERM;
}

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, char* const* env, int out, int err, int listener, int parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  if (out >= 0) ::dup2(out, STDOUT_FILENO);
  if (err >= 0) ::dup2(err, STDERR_FILENO);
  if (listener >= 0) ::fcntl(listener, F_SETFD, 0);
  // A launcher in the background of a script ignores SIGINT, and its children would inherit that.
  for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(argv[0], argv, env);
  const int reason = errno;
  ::dprintf(STDERR_FILENO, "ranklab: error: [launch] cannot start the program; got '%s': %s; do: check its path\n",
            argv[0], std::strerror(reason));
  ::_exit(reason == ENOENT ? 127 : 126);
}

}  // namespace

LaunchGroup::LaunchGroup(const LaunchPlan& plan, int restart, int listener)
    : plan_(plan), ranks_(static_cast<size_t>(plan.ranks_here)) {
  const sigset_t set = launcher_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  for (int local = 0; local < plan.ranks_here; ++local) start(local, restart, local == 0 ? listener : -1);
}

LaunchGroup::~LaunchGroup() {
  send_all(SIGKILL);
  for (Rank& rank : ranks_) {
    if (rank.pid > 0) ::waitpid(rank.pid, nullptr, 0);
    for (const int descriptor : {rank.out.from, rank.out.copy, rank.err.from, rank.err.copy})
      if (descriptor >= 0) ::close(descriptor);
  }
  ::close(signals_);
}

void LaunchGroup::start(int local_rank, int restart, int listener) {
  Rank& rank = ranks_[static_cast<size_t>(local_rank)];
  rank.number = plan_.first_rank() + local_rank;
  rank.shown = plan_.shown.empty() || plan_.shown.contains(local_rank);
  const int out = open_stream(rank, rank.out, local_rank, kTeeOut);
  const int err = open_stream(rank, rank.err, local_rank, kTeeErr);
  std::map<std::string, std::string> extra = rank_environment(plan_, local_rank, restart);
  if (listener >= 0) extra[kListenerVariable] = std::to_string(listener);
  std::vector<std::string> environment = merged_environment(extra);
  std::vector<std::string> program = plan_.program;
  const std::vector<char*> argv = pointers(program);
  const std::vector<char*> env = pointers(environment);
  const int parent = ::getpid();
  rank.pid = ::fork();
  if (rank.pid == 0) become(argv.data(), env.data(), out, err, listener, parent);
  RANKLAB_CHECK(rank.pid > 0, ErrorKind::kEnvironment, .where = "launch", .what = "the system cannot start a process",
                .got = std::strerror(errno), .want = std::to_string(plan_.ranks_here) + " processes",
                .fix = "use fewer ranks, or raise the limit of processes (ulimit -u)");
  ::setpgid(rank.pid, rank.pid);  // called by the parent and the child, because either may run first
  if (out >= 0) ::close(out);
  if (err >= 0) ::close(err);
}

GroupEnd LaunchGroup::wait() {
  while (has_running_ranks()) {
    poll_once();
    push_on();
  }
  // Reads the ranks' final output. A grandchild may keep a pipe open, so only what is already there is read.
  for (Rank& rank : ranks_) {
    read(rank, rank.out);
    read(rank, rank.err);
    for (Stream* stream : {&rank.out, &rank.err})
      if (!stream->partial.empty()) show(rank, stream->to, stream->partial);
  }
  if (end_.signal == 0 || failed_while_stopping_ != 0) show_held_errors();
  if (copy_is_lost_ && end_.exit_code == 0) end_.exit_code = exit_code(ErrorKind::kOutputLost);
  if (end_.signal != 0) end_.exit_code = failed_while_stopping_ != 0 ? failed_while_stopping_ : 128 + end_.signal;
  return end_;
}

bool LaunchGroup::has_running_ranks() const {
  for (const Rank& rank : ranks_)
    if (rank.pid > 0) return true;
  return false;
}

void LaunchGroup::poll_once() {
  std::vector<pollfd> waits = {{signals_, POLLIN, 0}};
  for (const Rank& rank : ranks_)
    for (const Stream* stream : {&rank.out, &rank.err})
      if (stream->from >= 0) waits.push_back({stream->from, POLLIN, 0});
  ::poll(waits.data(), waits.size(), static_cast<int>(kWatchTick.count()));
  for (Rank& rank : ranks_) {
    read(rank, rank.out);
    read(rank, rank.err);
  }
  read_signals();
  reap();
}

void LaunchGroup::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (end_.signal != 0) {
      // The user signalled twice. SIGHUP does not count, because the shell and the kernel both send it when a terminal
      // closes.
      if (signal != SIGHUP) send_all(SIGKILL);
      continue;
    }
    end_all_by(signal);  // all ranks stop after the step in which the signal reached the first of them
  }
}

void LaunchGroup::end_all_by(int signal) {
  end_.signal = signal == SIGHUP ? SIGTERM : signal;
  ending_since_ = Clock::now();
  send_all(end_.signal);
}

void LaunchGroup::reap() {
  for (Rank& rank : ranks_) {
    int status = 0;
    if (rank.pid <= 0 || ::waitpid(rank.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != rank.pid) continue;
    if (WIFSTOPPED(status)) report_stopped(rank, WSTOPSIG(status));
    rank.stopped = WIFSTOPPED(status);
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
    const int pid = std::exchange(rank.pid, -1);
    ::kill(-pid, SIGKILL);  // also kills processes that the rank started
    rank.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    note_end(rank, pid, status);
  }
}

// Reported here because nobody else notices a stopped rank before the ranks have connected.
void LaunchGroup::report_stopped(const Rank& rank, int signal) {
  std::fprintf(stderr,
               "ranklab launch: rank %d (pid %d) is stopped by signal %d (%s), and the others wait for it; do: kill "
               "-CONT %d\n",
               rank.number, rank.pid, signal, ::strsignal(signal), rank.pid);
}

// Whether an earlier rank's end stays the reported one. A rank that lost a peer may be reaped before that peer, whose
// own error then replaces it, because it says what was wrong.
bool LaunchGroup::keeps_first_end(bool killed, int code) const {
  if (!end_.failed) return true;
  const bool lost_a_peer = !killed && code == exit_code(ErrorKind::kCommunication);
  return lost_a_peer_ && pushed_ == 0 && !lost_a_peer;
}

// A rank that has just been started does not catch signals yet, and dies of one that later would have ended the whole
// run: it is taken for that, also where another rank already reported that it lost this one. The signals that
// push_on() sends after a failure are none of a user's.
bool LaunchGroup::is_asked_to_end(int status) const {
  if (!plan_.trains || !WIFSIGNALED(status) || (end_.failed && (!lost_a_peer_ || pushed_ != 0))) return false;
  const int signal = WTERMSIG(status);
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

void LaunchGroup::note_end(const Rank& rank, int pid, int status) {
  const bool killed = WIFSIGNALED(status);
  if (end_.signal != 0) return note_end_after_signal(killed, rank.exit_code);
  if (is_asked_to_end(status)) {
    end_ = {};
    end_all_by(WTERMSIG(status));
    return note_end_after_signal(killed, rank.exit_code);
  }
  if ((!killed && WEXITSTATUS(status) == 0) || !keeps_first_end(killed, WEXITSTATUS(status))) return;
  if (plan_.trains && !killed && ends_a_training(WEXITSTATUS(status))) {
    // The others end in their own way, and nothing is restarted. Ranks that got no signal themselves end as after
    // SIGTERM.
    if (end_.exit_code == 0 || end_.exit_code == 128 + SIGTERM) end_.exit_code = WEXITSTATUS(status);
    return;
  }
  if (!end_.failed) ending_since_ = Clock::now();
  end_.failed = true;
  lost_a_peer_ = plan_.trains && !killed && WEXITSTATUS(status) == exit_code(ErrorKind::kCommunication);
  const std::string who = "rank " + std::to_string(rank.number) + " (pid " + std::to_string(pid) + ") ";
  end_.exit_code = killed ? exit_code(ErrorKind::kCommunication) : WEXITSTATUS(status);
  end_.story = killed ? who + "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
                            ::strsignal(WTERMSIG(status)) + ")"
                      : who + "ended with exit code " + std::to_string(end_.exit_code);
}

// After a signal, ranks end with the signal's code, or with an error because another rank has left. Any other code is
// an error of its own: a run that could not save must not look like one that did.
void LaunchGroup::note_end_after_signal(bool killed, int code) {
  if (!plan_.trains || (!killed && (code == 0 || ends_a_training(code)))) return;
  if (!lost_since_) lost_since_ = Clock::now();
  const bool lost_a_peer = code == exit_code(ErrorKind::kCommunication) || code == exit_code(ErrorKind::kTimeout);
  if (!killed && !lost_a_peer && failed_while_stopping_ == 0) failed_while_stopping_ = code;
}

void LaunchGroup::push_on() {
  if (!ending_since_ || pushed_ == 2) return;
  const auto since = Clock::now() - *ending_since_;
  if (end_.signal != 0) return push_on_after_signal(since);
  if (pushed_ == 0 && since > kAskAfterFailure) {
    send_all(SIGTERM);
    pushed_ = 1;
  }
  if (since > kKillStopped) kill_stopped();
  if (since > (plan_.trains ? kKillAfterFailure : kKillOthersPrograms)) kill_all();
}

void LaunchGroup::push_on_after_signal(Clock::duration since) {
  if (since > kKillStopped) kill_stopped();
  const bool lost = lost_since_ && Clock::now() - *lost_since_ > kKillAfterLoss;
  const milliseconds patience = !plan_.trains ? kKillOthersPrograms : plan_.saves ? kKillAfterSaving : kKillAfterSignal;
  if (lost || since > patience) kill_all();
}

void LaunchGroup::kill_stopped() {
  for (Rank& rank : ranks_) {
    if (rank.pid <= 0 || !rank.stopped) continue;
    rank.stopped = false;
    std::fprintf(stderr, "ranklab launch: rank %d (pid %d) is stopped and cannot finish its step: it is killed\n",
                 rank.number, rank.pid);
    ::kill(-rank.pid, SIGKILL);
  }
}

void LaunchGroup::kill_all() {
  send_all(SIGKILL);
  pushed_ = 2;
}

void LaunchGroup::send_all(int signal) {
  for (const Rank& rank : ranks_)
    if (rank.pid > 0) ::kill(-rank.pid, signal);
}

}  // namespace ranklab
