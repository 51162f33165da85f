// Stands where a test names the program: asks the test's fork server for a copy, waits for it and ends as it ended.
// Where no copy can stand for this process (other limits, user, namespaces, variables read while loading) it becomes
// the program itself.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/fork_server/request.h"

namespace ranklab::fork_server {
namespace {

[[noreturn]] void fail(const char* what, const std::string& got, const char* fix) {
  std::fprintf(stderr, "fork server's client: error: %s; got %s; do: %s\n", what, got.c_str(), fix);
  std::exit(125);
}

std::vector<int> open_files() {
  std::vector<int> out;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) fail("its open files cannot be listed", std::strerror(errno), "mount /proc");
  while (const dirent* entry = ::readdir(folder))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != ::dirfd(folder)) out.push_back(std::atoi(entry->d_name));
  ::closedir(folder);
  std::sort(out.begin(), out.end());
  return out;
}

// Signals that whoever sends them means for the copy; those of job control stop the client alone.
sigset_t forwarded_signals() {
  sigset_t all;
  ::sigfillset(&all);
  for (const int own : {SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    ::sigdelset(&all, own);
  return all;
}

bool send_request(int socket, Request request, std::vector<int> files, const std::string& text) {
  iovec bytes{&request, sizeof request};
  std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(head), files.data(), files.size() * sizeof(int));
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  if (sent < 0) return false;
  const auto done = static_cast<size_t>(sent);
  return write_all(socket, reinterpret_cast<const char*>(&request) + done, sizeof request - done) &&
         write_all(socket, text.data(), text.size());
}

void report_cpu_time(double cpu_s) {
  const char* path = std::getenv(kTimesVariable);
  if (path == nullptr) return;
  FILE* file = std::fopen(path, "a");
  if (file == nullptr) fail("the processor time cannot be told", path, "name a file that can be written");
  std::fprintf(file, "%.6f\n", cpu_s);
  std::fclose(file);
}

[[noreturn]] void end_like(int status) {
  if (!WIFSIGNALED(status)) std::exit(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const rlimit no_core{0, 0};  // of this process nobody wants one
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(signal, SIG_DFL);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  std::exit(128 + signal);
}

int run(int argc, char** argv, char** environment) {
  const char* named = std::getenv(kServerVariable);
  const std::string server = named == nullptr ? "" : named;
  const size_t colon = server.find(':');
  if (colon == std::string::npos)
    fail("no fork server is named in RANKLAB_FORK_SERVER", "\"" + server + "\"",
         "run it from a test that starts one (tests/fork_server/fork_server.h), or run the program itself");
  const std::string program = server.substr(colon + 1);

  Request request;
  std::memset(&request, 0, sizeof request);
  request.circumstances = circumstances_of_this_process();
  std::vector<int> files = open_files();
  if (files.size() > kMostFiles) fail("too many open files", std::to_string(files.size()), "open at most 250");
  request.file_count = static_cast<int>(files.size());
  std::copy(files.begin(), files.end(), request.files.begin());
  const int folder = ::open(".", O_PATH | O_CLOEXEC);
  if (folder < 0) fail("the working folder cannot be opened", std::strerror(errno), "change to another folder");
  files.push_back(folder);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
      ::sigaddset(&request.ignored_signals, signal);
  }
  request.umask = ::umask(0);
  const sigset_t forwarded = forwarded_signals();
  ::sigprocmask(SIG_BLOCK, &forwarded, &request.blocked_signals);
  std::string text;
  for (int i = 0; i < argc; ++i) text += std::string(argv[i]) + '\0';
  request.argument_count = static_cast<uint32_t>(argc);
  for (char** variable = environment; *variable != nullptr; ++variable, ++request.variable_count)
    text += std::string(*variable) + '\0';
  request.text_bytes = static_cast<uint32_t>(text.size());

  socklen_t size = 0;
  const sockaddr_un address = abstract_address(server.substr(0, colon), size);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      !send_request(socket, request, files, text))
    fail("no fork server answers", server + ": " + std::strerror(errno), "see what the test printed when it started");

  const int signals = ::signalfd(-1, &forwarded, SFD_CLOEXEC);
  std::array<pollfd, 2> waits = {{{socket, POLLIN, 0}, {signals, POLLIN, 0}}};
  while (true) {
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) {
      Answer answer;
      if (!read_all(socket, &answer, sizeof answer))
        fail("the fork server is gone", server, "see what the test printed when it started");
      if (answer.forked) {
        report_cpu_time(answer.cpu_s);
        end_like(answer.status);
      }
      ::umask(request.umask);
      ::sigprocmask(SIG_SETMASK, &request.blocked_signals, nullptr);
      ::execv(program.c_str(), argv);
      fail("the program cannot be started", program + ": " + std::strerror(errno), "build it");
    }
    signalfd_siginfo signal;
    if (::read(signals, &signal, sizeof signal) != sizeof signal) continue;
    const auto number = static_cast<unsigned char>(signal.ssi_signo);
    write_all(socket, &number, 1);
  }
}

}  // namespace
}  // namespace ranklab::fork_server

int main(int argc, char** argv, char** environment) { return ranklab::fork_server::run(argc, argv, environment); }
