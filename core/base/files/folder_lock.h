// Ensures that only one process at a time writes into a folder: flock (2) on the folder itself, so nothing is left in
// it. The kernel releases it when the process ends, however it ends. Where folders cannot be locked (some network file
// systems), there is no protection. Cost: two system calls. Thread rule: one thread.
#pragma once
#include <string>

namespace ranklab {

class FolderLock {
 public:
  // REQUIRES: the folder exists. Throws kInvalidArgument, from `where`, if another process has locked it; `option` is
  // what names the folder on the command line.
  FolderLock(const std::string& folder, const std::string& where, const std::string& option);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace ranklab
