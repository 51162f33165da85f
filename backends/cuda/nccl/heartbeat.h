// Detects dead ranks: each rank renews a heartbeat in the world's store twice a second and watches the next rank's, so
// that a killed rank is named within seconds, although it cannot report anything itself. The same thread receives
// failures that other ranks report, and reports this rank's own. It never touches the GPU, whose driver may block other
// threads for a long time. Cost: three round trips to the store every half second. Thread rule: created and destroyed
// by the rank's thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "backends/cuda/nccl/failure.h"
#include "backends/cuda/nccl/rendezvous.h"

namespace ranklab {

struct HeartbeatOptions {
  std::chrono::milliseconds period{500};
  std::chrono::milliseconds silence{4'000};  // time after which a silent rank counts as gone; 0: never
};

// The unfinished ranks whose heartbeat did not change within two and a half periods, as in "no sign of life of rank 1";
// "" if there is none. If the store does not answer either, the text says so. Called when something hangs. Cost: two
// round trips to the store per rank, and these two and a half periods. Thread rule: any thread.
std::string silent_ranks(Rendezvous& rendezvous, HeartbeatOptions options);

class Heartbeat {
 public:
  // Both must outlive the Heartbeat. In a world of one rank no thread is started.
  Heartbeat(Rendezvous& rendezvous, Failure& failure, HeartbeatOptions options);
  ~Heartbeat() { stop(); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void beat();
  void watch_next();

  Rendezvous& rendezvous_;
  Failure& failure_;
  HeartbeatOptions options_;
  int64_t count_ = 0;
  std::string last_seen_;
  Clock::time_point seen_at_;
  bool next_is_done_ = false;
  std::mutex mutex_;
  std::condition_variable stop_came_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ranklab
