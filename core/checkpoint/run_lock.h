// Only one run writes to a folder of checkpoints or to that of its log: flock (2) on the folder's file "lock", which
// also names the holder. The kernel releases it when the process ends, however it ends, so no stale lock remains. If
// one run has several processes, that of rank 0 holds the lock. Thread rule: one thread.
#pragma once
#include <string>

namespace ranklab {

// What a run locks a folder for: the wording of its errors, and a lock file of its own, so that one folder may serve
// both.
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
