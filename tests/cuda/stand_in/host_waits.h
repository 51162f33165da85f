// Counts where the host waits for the stand-in's GPUs: what an operator's kernels need to know before they can be
// launched (nonzero(), a mask as an index, bincount()), a number that is read (item()), a copy between the memory of
// host and GPU that is not asked to go on by itself. Each such place stops a GPU's queue and cannot be part of a CUDA
// graph. Waits that the stand-in needs for itself are none. Thread rule: any thread; one HostWaits at a time.
#pragma once
#include <map>
#include <string>

namespace ranklab::stand_in {

using WaitCounts = std::map<std::string, int>;  // by operator

class HostWaits {
 public:
  HostWaits();
  ~HostWaits();
  HostWaits(const HostWaits&) = delete;
  HostWaits& operator=(const HostWaits&) = delete;
  WaitCounts counts() const;  // of all threads, since it was made
};

void note_host_wait(const std::string& what);

// While one lives, what this thread does is the stand-in's own affair.
class NoHostWaits {
 public:
  NoHostWaits();
  ~NoHostWaits();
  NoHostWaits(const NoHostWaits&) = delete;
  NoHostWaits& operator=(const NoHostWaits&) = delete;

 private:
  bool before_;
};

}  // namespace ranklab::stand_in
