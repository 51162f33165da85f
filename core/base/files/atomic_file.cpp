#include "core/base/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/files/input_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// No two files of this process, nor of two processes, share a temporary name.
std::string fresh_name(const std::string& path) {
  static std::atomic<uint64_t> count = 0;
  return path + ".part" + std::to_string(::getpid()) + "." + std::to_string(count++);
}

std::string free_bytes(const std::string& folder) {
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0) return {};
  return ", " + human_bytes(static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize)) + " free";
}

int retry_if_interrupted(const auto& call) {
  int result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, ErrorText words, AtomicFileOptions options)
    : path_(std::move(path)), words_(std::move(words)), options_(options) {
  struct stat there {};
  if (::stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    if (S_ISDIR(there.st_mode)) {  // otherwise commit() would fail only after everything has been written
      errno = EISDIR;
      refuse("create");
    }
    // rename() would replace it: a system device, or a pipe that another process reads.
    words_.got = quote(path_) + ": " + file_type_name(there.st_mode);
    words_.want = "a new file, or a regular one";
    throw Error(ErrorKind::kIo, words_);
  }
  // A name that already exists is a leftover of a killed process whose pid was reused.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && fd_ < 0; ++i) {
    temporary_ = fresh_name(path_);
    fd_ = retry_if_interrupted([this] {
      return options_.calls->open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    });
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) refuse("create");
  unfinished_.emplace(temporary_);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) options_.calls->close(fd_);
  if (!named_) options_.calls->unlink(temporary_.c_str());
}

void AtomicFile::refuse(const char* call) const {
  const int reason = errno;
  ErrorText text = words_;
  text.got = quote(path_) + ": " + call + ": " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT)
    text.got += " after " + human_bytes(static_cast<double>(written_bytes_)) + free_bytes(folder_of(path_));
  throw Error(ErrorKind::kIo, std::move(text));
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = options_.calls->write(fd_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = ENOSPC;  // a full disk is the only reason for a write of 0 bytes
    if (wrote <= 0) refuse("write");
    bytes.remove_prefix(static_cast<size_t>(wrote));
    written_bytes_ += static_cast<uint64_t>(wrote);
  }
}

void AtomicFile::seek(uint64_t offset) {
  if (options_.calls->seek(fd_, static_cast<off_t>(offset)) < 0) refuse("seek");
}

// After any error but EINTR the kernel may have dropped the dirty pages: a second sync would report success.
void AtomicFile::sync(int fd, const char* call) {
  if (retry_if_interrupted([&] { return options_.calls->sync(fd); }) != 0) refuse(call);
}

void AtomicFile::sync_folder() {
  const int folder = retry_if_interrupted(
      [this] { return options_.calls->open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (folder < 0) refuse("open the folder");
  try {
    sync(folder, "sync the folder");
  } catch (...) {
    options_.calls->close(folder);
    throw;
  }
  options_.calls->close(folder);
}

void AtomicFile::commit() {
  if (options_.durable) sync(fd_, "sync");
  // Linux closes the descriptor whatever close() returns, so close() is never retried.
  if (options_.calls->close(std::exchange(fd_, -1)) != 0 && errno != EINTR) refuse("close");
  if (options_.calls->rename(temporary_.c_str(), path_.c_str()) != 0) refuse("rename");
  named_ = true;
  unfinished_.reset();
  if (options_.durable) sync_folder();
}

void write_file_atomically(const std::string& path, std::string_view bytes, ErrorText words,
                           AtomicFileOptions options) {
  AtomicFile file(path, std::move(words), options);
  file.write(bytes);
  file.commit();
}

}  // namespace ranklab
