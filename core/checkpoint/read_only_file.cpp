#include "core/checkpoint/read_only_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

[[noreturn]] void refuse_io(const std::string& verb, const std::string& path) {
  throw Error(ErrorKind::kIo, {.where = "checkpoint",
                               .what = "cannot " + verb + " " + quote(path),
                               .got = std::strerror(errno),
                               .fix = "check the path and its permissions"});
}

}  // namespace

void refuse_checkpoint_file(const std::string& path, const std::string& what, const std::string& got,
                            const std::string& want) {
  throw Error(ErrorKind::kBadFile, {.where = "checkpoint",
                                    .what = quote(path) + ": " + what,
                                    .got = got,
                                    .want = want,
                                    .fix = "use another copy of the file, or an earlier checkpoint"});
}

std::string printable(std::string_view text, size_t limit) {
  std::string out(text.substr(0, limit));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > limit ? out + "..." : out;
}

ReadOnlyFile::ReadOnlyFile(std::string path) : path_(std::move(path)) {
  do {
    // O_NONBLOCK: to open a pipe would wait for its writer.
    fd_ = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0 && errno == ELOOP)
    refuse_checkpoint_file(path_, "this is a symbolic link", "a link", "the file itself: pass what readlink -f prints");
  if (fd_ < 0) refuse_io("open", path_);
  struct stat status {};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    refuse_checkpoint_file(path_, "this is no regular file", S_ISDIR(status.st_mode) ? "a folder" : "a special file",
                           "a file");
  }
  size_bytes_ = static_cast<uint64_t>(status.st_size);
}

ReadOnlyFile::~ReadOnlyFile() { ::close(fd_); }

void ReadOnlyFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_io("read", path_);
    if (got == 0)
      refuse_checkpoint_file(path_, "the file became shorter while it was read", std::to_string(offset) + " bytes",
                             std::to_string(size_bytes_) + " bytes");
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
}

}  // namespace ranklab
