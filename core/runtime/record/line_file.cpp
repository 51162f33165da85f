#include "core/runtime/record/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

LineFile::LineFile(const std::string& path, Begin begin) {
  struct stat there {};
  // A pipe without a reader would block the run forever.
  RANKLAB_CHECK(::stat(path.c_str(), &there) != 0 || !S_ISFIFO(there.st_mode), ErrorKind::kIo, .where = "log",
                .what = "cannot write " + quote(path), .got = "a pipe", .want = "a new file, or a regular one",
                .fix = "pass a folder of your own with --log-dir");
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (begin == Begin::kEmpty ? O_TRUNC : 0), 0666);
  RANKLAB_CHECK(fd_ >= 0, ErrorKind::kIo, .where = "log", .what = "cannot write " + quote(path),
                .got = std::strerror(errno), .fix = "pass a folder you may write to with --log-dir");
}
LineFile::~LineFile() {
  if (fd_ >= 0) ::close(fd_);
}
LineFile::LineFile(LineFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
LineFile& LineFile::operator=(LineFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

std::string LineFile::add(const std::string& line) {
  struct stat before {};
  if (::fstat(fd_, &before) != 0) return std::strerror(errno);
  // Writing to a file that was removed while open succeeds silently, so check.
  if (before.st_nlink == 0) return "the file was removed";
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote > 0) {
      done += static_cast<size_t>(wrote);
      continue;
    }
    const int reason = wrote == 0 ? ENOSPC : errno;
    std::string text_of_reason = std::strerror(reason);
    if (S_ISREG(before.st_mode) && ::ftruncate(fd_, before.st_size) != 0)
      text_of_reason += ", and the written part of the line stays";
    return text_of_reason;
  }
  return "";
}

}  // namespace ranklab
