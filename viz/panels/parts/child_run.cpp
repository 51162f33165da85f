#include "viz/panels/parts/child_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"

namespace ranklab::viz {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kLook{5};
constexpr uint64_t kTail = 8192;  // bytes at the end of the output in which the last line is searched for

// How the child is started: without input, with its output in the file, and with default signal handling as in a shell.
class SpawnPlan {
 public:
  explicit SpawnPlan(const std::string& output_path) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::posix_spawn_file_actions_adddup2(&files_, STDOUT_FILENO, STDERR_FILENO);
    sigset_t usual, none;
    sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&usual, signal);
    sigemptyset(&none);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &usual);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

ChildRun::ChildRun(const std::string& program, const std::vector<std::string>& arguments, std::string output_path)
    : output_path_(std::move(output_path)) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const SpawnPlan plan(output_path_);
  const int failed = ::posix_spawn(&pid_, program.c_str(), plan.files(), plan.attributes(), argv.data(), environ);
  RANKLAB_CHECK(failed == 0, ErrorKind::kEnvironment, .where = "run it",
                .what = "cannot start the program, its output in " + quote(output_path_),
                .got = quote(program) + ": " + std::strerror(failed), .want = "the ranklab program",
                .fix = "was it rebuilt or moved? open the window again");
}

ChildRun::~ChildRun() {
  if (poll() != ChildState::kRunning) return;
  ::kill(pid_, SIGTERM);
  for (const Clock::time_point last = Clock::now() + kPatience; Clock::now() < last;) {
    if (poll() != ChildState::kRunning) return;
    std::this_thread::sleep_for(kLook);
  }
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

ChildState ChildRun::poll() {
  if (state_ != ChildState::kRunning) return state_;
  const pid_t gone = ::waitpid(pid_, &status_, WNOHANG);
  if (gone == 0 || (gone < 0 && errno == EINTR)) return state_;
  status_known_ = gone == pid_;  // otherwise somebody else has waited for it
  const bool well = status_known_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  state_ = cancel_requested_ ? ChildState::kCancelled : well ? ChildState::kSucceeded : ChildState::kFailed;
  end_ = Clock::now();
  return state_;
}

void ChildRun::cancel() {
  if (poll() != ChildState::kRunning || std::exchange(cancel_requested_, true)) return;
  ::kill(pid_, SIGTERM);
}

double ChildRun::seconds() const {
  return std::chrono::duration<double>((state_ == ChildState::kRunning ? Clock::now() : end_) - begin_).count();
}

std::string ChildRun::end_text() const {
  if (state_ == ChildState::kRunning) return "";
  if (!status_known_) return "exit code unknown";
  if (WIFSIGNALED(status_)) return strprintf("signal %d (%s)", WTERMSIG(status_), ::strsignal(WTERMSIG(status_)));
  return strprintf("exit code %d", WEXITSTATUS(status_));
}

std::string ChildRun::last_line() const {
  std::string tail;
  try {
    const InputFile output(output_path_, {});
    tail.resize(std::min(output.size_bytes(), kTail));
    tail.resize(output.read_at(output.size_bytes() - tail.size(), tail));
  } catch (const Error&) {
    return "";
  }
  std::istringstream file(tail);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!is_blank(line)) last = line;
  return last;
}

}  // namespace ranklab::viz
