// Runs code in a child process with limits of time and memory, because a learner's code may crash, loop, exit, or start
// processes, which are ended with it. The child is a fork, so it sees all of the parent's memory; its answer is one
// string. REQUIRES: the parent has no other threads (a fork copies only the calling one). Thread rule: one call at a
// time.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ranklab::lesson {

struct ChildResult {
  enum class End { kAnswered, kExited, kSignalled, kTimedOut, kInterrupted };
  End end = End::kAnswered;
  int code = 0;  // exit code or signal number
  // Whether the handler of the signal ran; it cannot run if the stack is full.
  bool handler_ran = false;
  int rank = -1;                      // the rank whose thread got the signal, if any
  std::vector<uint64_t> frames = {};  // crash_place.h
  std::string answer;
};

// `body` gets a function that sends an answer at once and exits the child, for threads that cannot be joined any more.
using Leave = std::function<void(const std::string& answer)>;
// A signal that the parent handles also ends the child (kInterrupted).
ChildResult run_in_child(const std::function<std::string(const Leave&)>& body, std::chrono::milliseconds limit);

}  // namespace ranklab::lesson
