// One run writes to a folder, of checkpoints or of its log: flock (2) on its file "lock", which also says who. The
// kernel lets go of it when the process ends, however it ends, so that no lock is ever left over. Where several
// processes are one run, that of rank 0 holds it. Thread rule: one thread.
#pragma once
#include <string>

namespace ranklab {

// What a run locks a folder for: the words of its errors, and a file of its own, so that one folder may serve for both.
struct RunLockUse {
  std::string file = "lock";
  std::string where = "checkpoint";
  std::string does = "saves to";
  std::string option = "--save";
};

class RunLock {
 public:
  // Throws kInvalidArgument naming pid, host and start of the run that has it; kIo.
  explicit RunLock(const std::string& run_folder, const RunLockUse& use = {});
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace ranklab
