// Where the ranks of a world of shapes wait for each other: each call of a group is one meeting, at which every member
// that exists leaves the time and the bytes of its posting, and the few numbers that its host computed with. Nobody
// waits for ranks that are only stood in for. Nothing hangs: when all ranks that run wait for calls that nobody is left
// to make, or one has failed, all are told. Thread rule: any thread.
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

// One call: the communicator's number, the ends and the tag of a message (-1, -1, 0 of a collective), and the call's.
struct MeetingKey {
  int communicator = 0;
  int from = -1, to = -1, tag = 0;
  int64_t number = 0;

  auto operator<=>(const MeetingKey&) const = default;
};

struct Posting {
  int64_t virtual_ns = 0, bytes = 0;
  at::Tensor numbers = {};  // in the host's memory, of a call that has any
};

// What a member learns when all have come.
struct Met {
  int64_t latest_ns = 0, most_bytes = 0;
  std::map<int, at::Tensor> numbers;  // by global rank
};

class Meetings {
 public:
  explicit Meetings(int ranks) : running_(ranks) {}

  // The same for all members of a group.
  int communicator(const std::string& label);

  void arrive(const MeetingKey& key, int global_rank, const Posting& posting);
  // Waits until `expected` have arrived. Throws when that cannot be.
  Met leave(const MeetingKey& key, int expected);
  bool met(const MeetingKey& key, int expected) const;
  void returned();  // a rank's body ended
  void failed();    // ... by an error: the others stop waiting

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
  std::string stuck_;  // the call that nobody is left to make
};

}  // namespace ranklab::meta
