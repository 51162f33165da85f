// The Gloo contexts of one group's members, made when the first call of the group has matched. Every member lives in
// this process, so whoever is first connects them all (over TCP on helper threads) and no member has to cooperate.
// Thread rule: any thread.
#pragma once
#include <gloo/context.h>
#include <gloo/transport/device.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace ranklab::cpu_sim {

class GlooGroup {
 public:
  // tcp_device: null for the in-process transport.
  GlooGroup(int size, std::shared_ptr<gloo::transport::Device> tcp_device, std::chrono::milliseconds timeout)
      : size_(size), tcp_device_(std::move(tcp_device)), timeout_(timeout) {}

  const std::shared_ptr<gloo::Context>& context(int seat);
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  // Wakes every member that waits inside Gloo with an exception. The group is then dead.
  void close();
  uint64_t next_message() { return messages_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void connect_tcp();

  const int size_;
  const std::shared_ptr<gloo::transport::Device> tcp_device_;
  const std::chrono::milliseconds timeout_;
  std::once_flag connected_;
  std::vector<std::shared_ptr<gloo::Context>> contexts_;
  std::atomic<uint64_t> messages_{0};
};

std::shared_ptr<gloo::transport::Device> make_loopback_tcp_device();

}  // namespace ranklab::cpu_sim
