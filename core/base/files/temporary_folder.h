// A new, private folder under $TMPDIR (else /tmp) that is removed with its content at the end, also after an error, and
// by remove_unfinished(). Cost: system calls. Thread rule: one thread.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/files/unfinished_path.h"

namespace ranklab {

class TemporaryFolder {
 public:
  // Throws kIo, from `where`. Its name begins with `name`.
  TemporaryFolder(const std::string& name, const char* where);
  ~TemporaryFolder();  // in a process that was forked meanwhile it leaves the folder alone
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  pid_t owner_;
  std::filesystem::path path_;
  std::optional<UnfinishedPath> unfinished_;
};

}  // namespace ranklab
