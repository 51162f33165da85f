// The Gloo contexts of one group's members in this process, created when the first call of the group has matched: one
// per member if the members are threads, only one if each is a process. Thread rule: any thread.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "backends/cpu_sim/transport/group_transport.h"

namespace ranklab::cpu_sim {

class GlooGroup {
 public:
  GlooGroup(int size, std::chrono::milliseconds timeout, std::function<GlooContexts()> connect)
      : size_(size), timeout_(timeout), connect_(std::move(connect)) {}

  const std::shared_ptr<gloo::Context>& context(int seat);
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  // Wakes every member that waits inside Gloo with an exception. The group is unusable afterwards.
  void close();
  uint64_t next_message() { return messages_.fetch_add(1, std::memory_order_relaxed); }

 private:
  const int size_;
  const std::chrono::milliseconds timeout_;
  const std::function<GlooContexts()> connect_;
  std::once_flag once_;
  std::atomic<bool> connected_{false};
  GlooContexts contexts_;
  std::atomic<uint64_t> messages_{0};
};

}  // namespace ranklab::cpu_sim
