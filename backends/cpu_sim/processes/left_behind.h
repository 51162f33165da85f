// What the ranks of a failing run leave for rank 0 (World::leave_behind()), as rank 0's process receives it: in parts,
// from members that may be gone before they have sent their last part. Thread rule: any thread.
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
  // Call when a member that may leave something has joined.
  void expect(int rank);
  void add(int rank, std::string_view part, bool last);
  // Call when the member is gone or silent: an incomplete transmission is of no use.
  void forget(int rank);
  // Waits until each expected member has sent its last part or is forgotten.
  std::vector<std::string> take(std::chrono::milliseconds limit);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::string> bytes_;  // by rank
  std::set<int> owing_;
};

}  // namespace ranklab::cpu_sim
