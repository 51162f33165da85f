// What the ranks of a run that fails leave to rank 0 (World::leave_behind()), as rank 0's process receives it: in
// parts, from members of which each may be gone before its last. Thread rule: any thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab::cpu_sim {

class LeftBehind {
 public:
  // A member that may leave something has joined.
  void expect(int rank);
  void add(int rank, std::string_view part, bool last);
  // The member is gone, or silent: what it has not sent whole is of no use.
  void forget(int rank);
  // Waits until each that is expected has sent its last part, or is forgotten.
  std::vector<std::string> take(std::chrono::milliseconds limit);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::string> bytes_;  // by rank
  std::set<int> owing_;
};

}  // namespace ranklab::cpu_sim
