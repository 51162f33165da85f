#include "core/base/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

FolderLock::FolderLock(const std::string& folder, const std::string& where, const std::string& option)
    : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0 || ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(fd_);
  throw Error(ErrorKind::kInvalidArgument, {.where = where,
                                            .what = "another process is writing into this folder",
                                            .got = quote(folder),
                                            .want = "one at a time",
                                            .fix = "wait for it, or give another folder as " + option});
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ranklab
