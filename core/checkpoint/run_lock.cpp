#include "core/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

[[noreturn]] void refuse(const std::string& path, const char* call, const RunLockUse& use) {
  throw Error(ErrorKind::kIo, {.where = use.where,
                               .what = "cannot lock the folder of " + use.option,
                               .got = quote(path) + ": " + call + ": " + std::strerror(errno),
                               .fix = "check the folder and its permissions, or pass another with " + use.option});
}

std::string this_run() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 64> when{};
  std::strftime(when.data(), when.size(), "%Y-%m-%d %H:%M:%S", &local);
  return strprintf("pid %d on %s, started %s", static_cast<int>(::getpid()), host.data(), when.data());
}

std::string holder(int fd) {
  std::array<char, 400> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  std::string_view line(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  line = line.substr(0, line.find('\n'));
  return line.empty() ? "an unknown run" : printable(line, 300);
}

}  // namespace

RunLock::RunLock(const std::string& run_folder, const RunLockUse& use) {
  const std::string path = run_folder + "/" + use.file;
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd_ < 0) refuse(path, "open", use);
  int locked = 0;
  do {
    locked = ::flock(fd_, LOCK_EX | LOCK_NB);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) {
    const int reason = errno;
    const std::string who = reason == EWOULDBLOCK ? holder(fd_) : "";
    ::close(fd_);
    errno = reason;
    if (reason != EWOULDBLOCK) refuse(path, "flock", use);
    throw Error(ErrorKind::kInvalidArgument, {.where = use.where,
                                              .what = "another run " + use.does + " " + quote(run_folder),
                                              .got = who,
                                              .want = "one run at a time",
                                              .fix = "wait for it, end it, or pass another folder with " + use.option});
  }
  const std::string text = this_run() + "\n";
  const bool written =
      ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  static_cast<void>(written);  // on a full disk the lock still works, but does not name its holder
}

RunLock::~RunLock() { ::close(fd_); }

}  // namespace ranklab
