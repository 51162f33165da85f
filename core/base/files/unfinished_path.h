// Files and folders that this process has begun and not finished, so that a program which a signal ends (Ctrl-C in the
// middle of a large file) can still remove them. A library does not handle signals: the program decides whether it
// calls remove_unfinished(). Cost: a slot of a fixed table; a path is not remembered while all slots are taken. Thread
// rule: any thread.
#pragma once
#include <string>

namespace ranklab {

// Remembers a path as long as it lives. Processes that this one forks do not remove it.
class UnfinishedPath {
 public:
  explicit UnfinishedPath(const std::string& path);
  ~UnfinishedPath();
  UnfinishedPath(const UnfinishedPath&) = delete;
  UnfinishedPath& operator=(const UnfinishedPath&) = delete;

 private:
  int slot_ = -1;
};

// Removes the remembered files, and starts a process that removes the remembered folders once this one has ended. For
// signal handlers: uses async-signal-safe calls only.
void remove_unfinished();

}  // namespace ranklab
