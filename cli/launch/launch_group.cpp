#include "cli/launch/launch_group.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/base/text.h"

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

std::string mark(int rank) { return "[rank " + std::to_string(rank) + "] "; }

// Uses one write per line, so that lines of different ranks never mix.
void write_line(int to, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(to, text.data(), text.size()) < 0) return;  // nobody reads any more, so there is nothing to do
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
    end_.signal = signal == SIGHUP ? SIGTERM : signal;
    ending_since_ = Clock::now();
    send_all(end_.signal);  // all ranks stop after the step in which the signal reached the first of them
  }
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

void LaunchGroup::note_end(const Rank& rank, int pid, int status) {
  const bool killed = WIFSIGNALED(status);
  if (end_.signal != 0) return note_end_after_signal(killed, rank.exit_code);
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
