// Ensures that only one run writes to a folder of checkpoints or of logs: flock (2) on the folder's file "lock", which
// also names the holder. The kernel releases it when the process ends, however it ends, so no stale lock remains. If a
// run has several processes, the process of rank 0 holds the lock. Thread rule: one thread.
#pragma once
#include <string>

namespace ranklab {

// The purpose for which a run locks a folder: the wording of its errors, and a separate lock file, so that one folder
// may serve two purposes.
struct RunLockUse {
  std::string file = "lock";
  std::string where = "checkpoint";
  std::string does = "saves to";
  std::string option = "--save";
};

class RunLock {
 public:
  // Throws kInvalidArgument naming pid, host and start time of the run that holds it; kIo.
  explicit RunLock(const std::string& run_folder, const RunLockUse& use = {});
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace ranklab
