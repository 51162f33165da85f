// Where the processes of a CUDA world meet: a key-value store (c10d's TCPStore, the store only) served by rank 0 or by
// torchrun's agent. It carries NCCL's unique ids, signs of life, the news that a rank failed, and call signatures when
// they are compared. A process keeps its connection to a store for good; every world and every run of it has a prefix
// of its own, so that none reads what another left. Every wait has a limit, and names the rank it waited for. Thread
// rule: next_generation() while no other thread is in it; the rest from any thread.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/group.h"
#include "core/comm/process_env.h"

namespace ranklab {

class Rendezvous {
 public:
  // `connect`: until the store must be there; `wait`: of each later wait for another rank (0: for ever). A world of one
  // needs no store and opens no socket.
  Rendezvous(const ProcessEnv& env, std::chrono::milliseconds connect, std::chrono::milliseconds wait);
  Rendezvous(const ProcessEnv& env, std::chrono::milliseconds timeout) : Rendezvous(env, timeout, timeout) {}
  ~Rendezvous();

  // A fresh name space. Every rank makes its generations in the same order.
  void next_generation();

  void set(const std::string& key, const std::string& value);
  // Waits for the key that `from_global_rank` sets. Throws kTimeout naming it, or the failure of a rank.
  std::string get(const std::string& key, int from_global_rank);
  // What is there now.
  std::optional<std::string> look(const std::string& key);
  // The same for many; nullopt when the store has not answered by then: its process is stopped, or unreachable.
  std::optional<std::vector<std::optional<std::string>>> look_all(const std::vector<std::string>& keys,
                                                                  std::chrono::milliseconds limit);
  void remove(const std::string& key);

  // Tells the others that this rank gives up, and why; the first report stays. Never throws.
  void report_failure(const std::string& what) noexcept;
  // Throws kCommunication when a rank has reported a failure. Cost: one round trip to the store.
  void check_failure();
  // Waits until every rank is here, so that the one that serves the store leaves last.
  void finish();
  bool has_finished(int rank);
  static std::string finished_key(int rank) { return "finished/" + std::to_string(rank); }
  // After a failure: the one that serves the store stays until the others have heard of it.
  void linger() noexcept;

  int rank() const { return env_.rank; }
  int world_size() const { return env_.world_size; }
  std::string where() const { return "cuda world, rank " + std::to_string(env_.rank); }
  std::string store_place() const;  // "rank 0 at 127.0.0.1:29500"

 private:
  struct Store;
  std::string get_within(const std::string& key, int from_global_rank, std::chrono::milliseconds limit);

  ProcessEnv env_;
  std::chrono::milliseconds wait_;
  std::unique_ptr<Store> store_;
};

}  // namespace ranklab
