#include "core/base/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/text.h"

namespace ranklab {

std::string file_type_name(unsigned mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return S_ISREG(mode) ? "a regular file" : "a special file";
}

void InputFile::refuse_call(const char* verb) const {
  RANKLAB_CHECK(errno != EMFILE, ErrorKind::kEnvironment, .where = words_.where,
                .what = "too many files are open to read " + quote(path_), .got = std::strerror(errno),
                .want = "a higher limit of open files", .fix = "raise it: ulimit -n");
  throw Error(ErrorKind::kIo, {.where = words_.where,
                               .what = std::string("cannot ") + verb + " " + quote(path_),
                               .got = std::strerror(errno),
                               .fix = words_.fix});
}

void InputFile::refuse_type(const std::string& got, const std::string& want) const {
  throw Error(ErrorKind::kIo, {.where = words_.where,
                               .what = quote(path_) + " is not a regular file",
                               .got = got,
                               .want = want,
                               .fix = words_.fix});
}

InputFile::InputFile(std::string path, InputWords words) : path_(std::move(path)), words_(std::move(words)) {
  do {
    // O_NONBLOCK: opening a pipe would otherwise wait for its writer. O_NOCTTY: a terminal must not become ours.
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (words_.follow_links ? 0 : O_NOFOLLOW));
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0 && errno == ELOOP && !words_.follow_links)
    refuse_type("a symbolic link",
                "the file itself: readlink -f tells where it is, cp -rL copies a folder without links");
  if (fd_ < 0) refuse_call("read");
  struct stat status {};
  if (::fstat(fd_, &status) != 0) {
    const int reason = errno;
    ::close(fd_);
    errno = reason;
    refuse_call("read");
  }
  is_pipe_ = S_ISFIFO(status.st_mode) && words_.take_open_pipe &&
             (path_.starts_with("/dev/fd/") || path_ == "/dev/stdin") && ::fcntl(fd_, F_SETFL, 0) == 0;
  if (!S_ISREG(status.st_mode) && !is_pipe_) {
    ::close(fd_);
    refuse_type(file_type_name(status.st_mode), "a regular file: pipes and devices may never end");
  }
  size_bytes_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(fd_); }

size_t InputFile::read_at(uint64_t offset, std::span<char> out) const {
  size_t have = 0;
  while (have < out.size()) {
    const ssize_t got = ::pread(fd_, out.data() + have, out.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_call("read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

size_t InputFile::read_some(std::span<char> out) {
  while (is_pipe_) {
    const ssize_t got = ::read(fd_, out.data(), out.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) refuse_call("read");
  }
  const size_t got = read_at(position_, out);
  position_ += got;
  return got;
}

std::string read_whole_file(const std::string& path, uint64_t limit_bytes, InputWords words) {
  InputFile file(path, words);
  const auto check = [&](uint64_t bytes) {
    RANKLAB_CHECK(bytes <= limit_bytes, ErrorKind::kIo, .where = words.where, .what = quote(path) + " is too large",
                  .got = std::to_string(bytes) + " bytes or more",
                  .want = "at most " + human_bytes(static_cast<double>(limit_bytes)),
                  .fix = "give a smaller file" + (words.fix.empty() ? "" : "; " + words.fix));
  };
  check(file.size_bytes());
  // The size is only a hint: the kernel's own files report 0 and want to be read at once; others may grow meanwhile.
  constexpr size_t kPiece = 1 << 14;
  std::string text(file.size_bytes() == 0 ? kPiece : static_cast<size_t>(file.size_bytes()) + 1, '\0');
  size_t have = 0;
  while (const size_t got = file.read_some(std::span(text).subspan(have))) {
    have += got;
    check(have);
    if (have == text.size()) text.resize(std::max(text.size() * 2, kPiece));
  }
  text.resize(have);
  return text;
}

std::string read_file_if_any(const std::string& path, uint64_t limit_bytes) {
  try {
    return read_whole_file(path, limit_bytes, {});
  } catch (const Error&) {
    return {};
  }
}

}  // namespace ranklab
