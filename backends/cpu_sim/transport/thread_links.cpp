#include "backends/cpu_sim/transport/thread_links.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "backends/cpu_sim/transport/data_connect.h"
#include "core/base/process_limit.h"

namespace ranklab::cpu_sim {
namespace {

class SharedStore {
 public:
  PeerStore store() {
    return {.set = [this](const auto& key, const auto& value) { set(key, value); },
            .get = [this](const auto& key) { return get(key); }};
  }

 private:
  void set(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }
  std::string get(const std::string& key) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return values_.contains(key); });
    return values_[key];
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// Both ends of the connection between any two ranks belong to this process, and each rank listens and polls.
int descriptors_of(int world_size) {
  constexpr int kOthers = 128;  // other descriptors of the process
  return world_size * (world_size - 1) + 4 * world_size + kOthers;
}

}  // namespace

std::vector<std::shared_ptr<PeerLinks>> connect_threads(int world_size) {
  require_descriptors(descriptors_of(world_size), "--transport tcp",
                      "a connection between each two of " + std::to_string(world_size) + " ranks");
  SharedStore shared;
  std::vector<std::shared_ptr<PeerLinks>> links(static_cast<size_t>(world_size));
  std::vector<std::exception_ptr> errors(links.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<size_t>(rank);
      try {
        PeerSockets sockets = connect_peers(
            {.rank = rank, .world_size = world_size, .address = "127.0.0.1", .unix_sockets = false}, shared.store());
        links[index] = std::make_shared<PeerLinks>(std::move(sockets.by_rank));
      } catch (...) {
        errors[index] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return links;
}

}  // namespace ranklab::cpu_sim
