// The rendezvous of the processes of a CUDA world: a key-value store (c10d's TCPStore, the store only) served by rank 0
// or by torchrun's agent. It carries NCCL's unique ids, heartbeats, failure reports, and call signatures when they are
// compared. A process keeps its connection to a store until it ends; every world, and every run of it, has its own key
// prefix, so none reads what another has left. Every wait has a limit, and its error names the rank that was waited
// for. Thread rule: next_generation() while no other thread uses it; the rest from any thread.
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
  // `connect`: time limit for reaching the store; `wait`: for each later wait for another rank (0: forever). A world of
  // one needs no store and opens no socket.
  Rendezvous(const ProcessEnv& env, std::chrono::milliseconds connect, std::chrono::milliseconds wait);
  Rendezvous(const ProcessEnv& env, std::chrono::milliseconds timeout) : Rendezvous(env, timeout, timeout) {}
  ~Rendezvous();

  // Begins a new key prefix. Every rank must call it in the same order.
  void next_generation();

  void set(const std::string& key, const std::string& value);
  // Waits for the key, which `from_global_rank` sets. Throws kTimeout naming that rank, or the failure that a rank has
  // reported.
  std::string get(const std::string& key, int from_global_rank);
  // The current value, without waiting.
  std::optional<std::string> look(const std::string& key);
  // The same for many keys; nullopt if the store has not answered in time, because its process is stopped or
  // unreachable.
  std::optional<std::vector<std::optional<std::string>>> look_all(const std::vector<std::string>& keys,
                                                                  std::chrono::milliseconds limit);
  void remove(const std::string& key);

  // Reports to the others that this rank gives up, and why; only the first report is kept. Never throws.
  void report_failure(const std::string& what) noexcept;
  // Throws kCommunication if a rank has reported a failure. Cost: one round trip to the store.
  void check_failure();
  // Waits until every rank has arrived, so that the rank that serves the store exits last.
  void finish();
  bool has_finished(int rank);
  static std::string finished_key(int rank) { return "finished/" + std::to_string(rank); }
  // After a failure: the rank that serves the store stays until the others have been notified.
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
