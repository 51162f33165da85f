// Doubles of the system calls that write files. FaultyCalls lets one call fail, HesitantCalls answers with EINTR and
// short writes only, CrashDisk is a disk in memory whose power can be cut before any call.
// Thread rule: one thread.
#pragma once
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/files/file_calls.h"

namespace ranklab {

// The n-th call (from 0) answers `reason`; the others are the system's. A write that fails so has taken half of its
// bytes before, as on a full disk.
class FaultyCalls : public FileCalls {
 public:
  FaultyCalls(int fail_at, int reason) : fail_at_(fail_at), reason_(reason) {}
  int made() const { return made_; }
  const std::string& failed() const { return failed_; }  // the call's name

  int open(const char* path, int flags, int mode) override {
    return fails("open") ? -1 : FileCalls::open(path, flags, mode);
  }
  ssize_t write(int fd, const void* bytes, size_t size) override {
    if (made_ == fail_at_) FileCalls::write(fd, bytes, size / 2);
    return fails("write") ? -1 : FileCalls::write(fd, bytes, size);
  }
  off_t seek(int fd, off_t offset) override { return fails("seek") ? -1 : FileCalls::seek(fd, offset); }
  int sync(int fd) override { return fails("sync") ? -1 : FileCalls::sync(fd); }
  int close(int fd) override {
    const int closed = FileCalls::close(fd);  // also when it reports an error
    return fails("close") ? -1 : closed;
  }
  int rename(const char* from, const char* to) override { return fails("rename") ? -1 : FileCalls::rename(from, to); }
  int unlink(const char* path) override { return fails("unlink") ? -1 : FileCalls::unlink(path); }

 protected:
  bool fails(const char* name) {
    if (made_++ != fail_at_) return false;
    failed_ = name;
    errno = reason_;
    return true;
  }

 private:
  int fail_at_;
  int reason_;
  int made_ = 0;
  std::string failed_;
};

// Every second call is interrupted, a write takes at most 7 bytes: all of that is legal and must change nothing.
class HesitantCalls : public FileCalls {
 public:
  int open(const char* path, int flags, int mode) override {
    return interrupted() ? -1 : FileCalls::open(path, flags, mode);
  }
  ssize_t write(int fd, const void* bytes, size_t size) override {
    return interrupted() ? -1 : FileCalls::write(fd, bytes, std::min<size_t>(size, 7));
  }
  int sync(int fd) override { return interrupted() ? -1 : FileCalls::sync(fd); }

 private:
  bool interrupted() {
    errno = EINTR;
    return ++calls_ % 2 == 1;
  }
  int calls_ = 0;
};

struct PowerCut {};  // thrown by CrashDisk

// What a disk may hold after a power cut: of each file the bytes that were synced, all that were written, or a part;
// of the folder the names as of the last sync or after any later change (LevelDB's fault injection, and ALICE, OSDI
// 2014, ask the same).
class CrashDisk : public FileCalls {
 public:
  using Names = std::map<std::string, std::shared_ptr<struct CrashFile>>;
  CrashDisk(const std::string& path, const std::string& content, int cut_before);
  int made() const { return made_; }
  // Every content that `path` may have; "(none)" for no file.
  std::vector<std::string> possible(const std::string& path) const;

  int open(const char* path, int flags, int mode) override;
  ssize_t write(int fd, const void* bytes, size_t size) override;
  off_t seek(int fd, off_t offset) override;
  int sync(int fd) override;
  int close(int fd) override;
  int rename(const char* from, const char* to) override;
  int unlink(const char* path) override;

 private:
  void count();
  void change();  // the folder's names became another

  int cut_before_;
  int made_ = 0;
  bool dead_ = false;
  Names names_;
  std::vector<Names> since_sync_;
  std::vector<std::shared_ptr<CrashFile>> open_;  // by descriptor; none for the folder
};

struct CrashFile {
  std::string written;
  std::string synced;
  size_t at = 0;  // where the next write begins
};

inline CrashDisk::CrashDisk(const std::string& path, const std::string& content, int cut_before)
    : cut_before_(cut_before) {
  names_[path] = std::make_shared<CrashFile>(CrashFile{content, content, 0});
  since_sync_ = {names_};
}

inline std::vector<std::string> CrashDisk::possible(const std::string& path) const {
  std::vector<std::string> contents;
  for (const Names& names : since_sync_) {
    const auto found = names.find(path);
    if (found == names.end()) {
      contents.emplace_back("(none)");
      continue;
    }
    const CrashFile& file = *found->second;
    contents.push_back(file.synced);
    contents.push_back(file.written);
    contents.push_back(file.written.substr(0, std::max(file.synced.size(), file.written.size() / 2)));
  }
  return contents;
}

inline void CrashDisk::count() {
  if (dead_ || made_++ != cut_before_) return;
  dead_ = true;
  throw PowerCut{};
}

inline void CrashDisk::change() { since_sync_.push_back(names_); }

inline int CrashDisk::open(const char* path, int flags, int) {
  count();
  open_.push_back((flags & O_DIRECTORY) != 0 ? nullptr : std::make_shared<CrashFile>());
  if (open_.back()) {
    names_[path] = open_.back();
    change();
  }
  return static_cast<int>(open_.size()) - 1;
}

inline ssize_t CrashDisk::write(int fd, const void* bytes, size_t size) {
  count();
  CrashFile& file = *open_[static_cast<size_t>(fd)];
  file.written.resize(std::max(file.written.size(), file.at + size));
  file.written.replace(file.at, size, static_cast<const char*>(bytes), size);
  file.at += size;
  return static_cast<ssize_t>(size);
}

inline off_t CrashDisk::seek(int fd, off_t offset) {
  count();
  open_[static_cast<size_t>(fd)]->at = static_cast<size_t>(offset);
  return offset;
}

inline int CrashDisk::sync(int fd) {
  count();
  if (const auto& file = open_[static_cast<size_t>(fd)]) {
    file->synced = file->written;
  } else {
    since_sync_ = {names_};
  }
  return 0;
}

inline int CrashDisk::close(int) { return dead_ ? 0 : (count(), 0); }

inline int CrashDisk::rename(const char* from, const char* to) {
  count();
  names_[to] = names_.at(from);
  names_.erase(from);
  change();
  return 0;
}

inline int CrashDisk::unlink(const char* path) {
  if (dead_) return 0;
  count();
  names_.erase(path);
  change();
  return 0;
}

}  // namespace ranklab
