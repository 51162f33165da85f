// Where the processes of a CUDA world meet: a key-value store (c10d's TCPStore, the store only) served by rank 0 or by
// torchrun's agent. It carries NCCL's unique ids, the news that a rank failed, and call signatures when they are
// compared. Every wait has the world's timeout, and names the rank it waited for. Thread rule: its rank's thread only.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/comm/group.h"
#include "core/comm/process_env.h"

namespace ranklab {

class Rendezvous {
 public:
  // A world of one needs no store and opens no socket.
  Rendezvous(const ProcessEnv& env, std::chrono::milliseconds timeout);
  ~Rendezvous();

  void set(const std::string& key, const std::string& value);
  // Waits for the key that `from_global_rank` sets. Throws kTimeout naming it, or the failure of a rank.
  std::string get(const std::string& key, int from_global_rank);
  void remove(const std::string& key);

  // Tells the others that this rank gives up, and why. Never throws.
  void report_failure(const std::string& what) noexcept;
  // Throws kCommunication when a rank has reported a failure. Cost: one round trip to the store.
  void check_failure();
  // Waits until every rank is here, so that the one that serves the store leaves last.
  void finish();

  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  struct Store;
  ProcessEnv env_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Store> store_;
};

}  // namespace ranklab
