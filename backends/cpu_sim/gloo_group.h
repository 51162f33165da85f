// The Gloo contexts of one group's members in this process, made when the first call of the group has matched. Where
// all members are threads, whoever is first connects them all (over TCP on helper threads) and no member has to
// cooperate; where each is a process, every one connects its own, with addresses from a store. Thread rule: any thread.
#pragma once
#include <gloo/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/device.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ranklab::cpu_sim {

using GlooContexts = std::vector<std::shared_ptr<gloo::Context>>;  // by seat; null for members elsewhere

class GlooGroup {
 public:
  GlooGroup(int size, std::chrono::milliseconds timeout, std::function<GlooContexts()> connect)
      : size_(size), timeout_(timeout), connect_(std::move(connect)) {}

  const std::shared_ptr<gloo::Context>& context(int seat);
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  // Wakes every member that waits inside Gloo with an exception. The group is then dead.
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

std::shared_ptr<gloo::transport::Device> make_tcp_device(const std::string& address);
// All members of a group, in this process, over `device`.
GlooContexts connect_threads(int size, std::shared_ptr<gloo::transport::Device> device,
                             std::chrono::milliseconds timeout);
// One member; the others call the same. Keys of the store start with `prefix`.
std::shared_ptr<gloo::Context> connect_member(int seat, int size, std::shared_ptr<gloo::transport::Device> device,
                                              std::chrono::milliseconds timeout, gloo::rendezvous::Store& store,
                                              const std::string& prefix);

}  // namespace ranklab::cpu_sim
