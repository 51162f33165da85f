// A file that appears whole or not at all: it is written under a temporary name in the same folder and commit() renames
// it, so readers see either the old file or the new one. With `durable` that also holds across a power failure: the
// bytes are on disk before the rename, and the rename before commit() returns (fsync, rename, fsync of the folder;
// Pillai et al., OSDI 2014, "All File Systems Are Not Created Equal", on why all three).
// Cost: nothing beyond the writes; durable waits twice for the disk. Thread rule: one thread; any number of files at
// once, of the same path too (the last commit wins).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/file_calls.h"
#include "core/base/files/unfinished_path.h"

namespace ranklab {

struct AtomicFileOptions {
  bool durable = false;
  FileCalls* calls = &system_file_calls();
};

class AtomicFile {
 public:
  // `words` is the error text: the caller sets where, what ("cannot write the trace") and fix; got names the path, the
  // call and the system's reason. Throws kIo.
  AtomicFile(std::string path, ErrorText words, AtomicFileOptions options = {});
  ~AtomicFile();  // removes the temporary file unless commit() renamed it; so does remove_unfinished()
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);  // throws kIo; short writes and EINTR are dealt with
  void seek(uint64_t offset);          // where the next write() begins; throws kIo
  void commit();                       // throws kIo; nothing may be written afterwards
  // For a library that writes to the file itself.
  int descriptor() const { return fd_; }
  // The error thrown for every failed call; reads errno.
  [[noreturn]] void refuse(const char* call) const;

 private:
  void sync(int fd, const char* call);
  void sync_folder();

  std::string path_;
  std::string temporary_;
  std::optional<UnfinishedPath> unfinished_;
  ErrorText words_;
  AtomicFileOptions options_;
  uint64_t written_bytes_ = 0;
  int fd_ = -1;
  bool named_ = false;  // the temporary name is gone
};

// The whole file in one call.
void write_file_atomically(const std::string& path, std::string_view bytes, ErrorText words,
                           AtomicFileOptions options = {});

}  // namespace ranklab
