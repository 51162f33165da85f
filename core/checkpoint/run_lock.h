// One run writes to a folder of checkpoints: flock (2) on its file "lock", which also says who. The kernel lets go of
// it when the process ends, however it ends, so that no lock is ever left over. Where several processes are one run,
// that of rank 0 holds it. Thread rule: one thread.
#pragma once
#include <string>

namespace ranklab {

class RunLock {
 public:
  // Throws kInvalidArgument naming pid, host and start of the run that has it; kIo.
  explicit RunLock(const std::string& run_folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace ranklab
