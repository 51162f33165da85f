// Rendezvous of the ranks of a world of meta tensors. Each call of a group is one meeting: every running member leaves
// the time at which it posted, the number of bytes, and the few values that its host computed with. Nobody waits for
// ranks that do not run because another rank represents them. Nothing hangs: if all running ranks wait for calls that
// no rank is left to make, or if one has failed, all are notified. Thread rule: any thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/base/error.h"

namespace ranklab::meta {

// One call: the communicator's id, the ends and the tag of a message (-1, -1, 0 for a collective), and the call's
// index.
struct MeetingKey {
  int communicator = 0;
  int from = -1, to = -1, tag = 0;
  int64_t number = 0;

  auto operator<=>(const MeetingKey&) const = default;
};

struct Posting {
  int64_t virtual_ns = 0, bytes = 0;
  at::Tensor numbers = {};  // in host memory, for a call that carries values
};

// What a member receives when all members have arrived.
struct Met {
  int64_t latest_ns = 0, most_bytes = 0;
  std::map<int, at::Tensor> numbers;  // by global rank
};

class Meetings {
 public:
  explicit Meetings(int ranks) : running_(ranks) {}

  // The communicator's id: the same for all members of a group.
  int communicator(const std::string& label);

  void arrive(const MeetingKey& key, int global_rank, const Posting& posting);
  // Waits until `expected` members have arrived. Throws if they cannot arrive any more.
  Met leave(const MeetingKey& key, int expected);
  bool met(const MeetingKey& key, int expected) const;
  void returned();  // a rank's body returned
  void failed();    // a rank's body threw an error: the others stop waiting

 private:
  struct Table {
    int arrived = 0, left = 0;
    Met met;
  };
  struct Waiter {
    int expected = 0;
    std::condition_variable woken = {};
  };
  bool complete(const MeetingKey& key, int expected) const;
  std::string text(const MeetingKey& key) const;
  void check_stuck();
  void give_up();

  mutable std::mutex mutex_;
  std::map<std::string, int> communicators_;  // by label
  std::map<MeetingKey, Table> tables_;
  std::multimap<MeetingKey, Waiter*> waiting_;
  int running_;
  bool broken_ = false;
  std::string stuck_;  // the call that no rank is left to make
};

}  // namespace ranklab::meta
