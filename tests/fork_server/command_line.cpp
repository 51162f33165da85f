#include "tests/fork_server/command_line.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <cstdlib>

namespace ranklab::fork_server {

CommandLine::~CommandLine() {
  for (const int file : files_) ::close(file);
}

bool CommandLine::receive(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid()) return false;
  if (!receive_files(socket) || files_.size() != static_cast<size_t>(request_.file_count) + 1) return false;
  text_.resize(request_.text_bytes);
  if (!read_all(socket, text_.data(), text_.size())) return false;
  split_text();
  return true;
}

bool CommandLine::receive_files(int socket) {
  iovec bytes{&request_, sizeof request_};
  std::vector<char> control(CMSG_SPACE((kMostFiles + 1) * sizeof(int)));
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got <= 0) return false;
  if (const cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr && head->cmsg_type == SCM_RIGHTS) {
    files_.resize((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(files_.data(), CMSG_DATA(head), files_.size() * sizeof(int));
  }
  const auto done = static_cast<size_t>(got);
  return read_all(socket, reinterpret_cast<char*>(&request_) + done, sizeof request_ - done);
}

void CommandLine::split_text() {
  char* at = text_.data();
  const auto take = [&](std::vector<char*>& words, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i, at += std::strlen(at) + 1) words.push_back(at);
    words.push_back(nullptr);
  };
  take(arguments_, request_.argument_count);
  take(variables_, request_.variable_count);
}

void CommandLine::take_on() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);  // a signal to its own group is not for the server
  if (::fchdir(files_.back()) != 0) std::_Exit(125);
  // First out of the way of the numbers that they shall have, which are below this.
  constexpr int kAbove = 512;
  for (int& file : files_) file = ::fcntl(file, F_DUPFD_CLOEXEC, kAbove);
  ::close_range(0, kAbove - 1, 0);
  for (int i = 0; i < request_.file_count; ++i)
    ::dup2(files_[static_cast<size_t>(i)], request_.files[static_cast<size_t>(i)]);
  ::close_range(kAbove, ~0U, 0);
  files_.clear();
  ::umask(request_.umask);
  for (int signal = 1; signal < NSIG; ++signal)
    std::signal(signal, ::sigismember(&request_.ignored_signals, signal) == 1 ? SIG_IGN : SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &request_.blocked_signals, nullptr);
  environ = variables_.data();
}

}  // namespace ranklab::fork_server
