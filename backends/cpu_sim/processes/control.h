// A rank's connection to the coordinator: joins the world, sends calls, receives matches and failures. One thread
// listens and sends heartbeats; it also detects when the coordinator's process is gone, or silent for too long. Cost: a
// send is one system call on the caller's thread and never blocks. Thread rule: any thread; handlers run on the
// listening thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "backends/cpu_sim/transport/frame.h"
#include "backends/cpu_sim/transport/socket.h"
#include "core/base/error.h"

namespace ranklab::cpu_sim {

struct JoinOptions {
  std::string address;  // numeric
  int port = 0;
  std::string token;
  std::string run_id;
  int64_t attempt = 0;
  int rank = 0;
  int world_size = 1;
  std::chrono::milliseconds join_timeout{60'000};
  std::chrono::milliseconds silence_limit{2'000};  // 0: never
};

// How the world ended: the first error, which every rank's run() throws, however early it comes, and the error that
// this rank's own calls throw within its body.
struct WorldFailure {
  Error first;
  Error mine;
  bool known_to_rank_zero = false;  // then rank 0's process prints it
};

class Control {
 public:
  // Returns when rank 0 has admitted this rank. Throws kTimeout when nobody does, or the reason for a refusal.
  explicit Control(JoinOptions options);
  // Returns when every rank has joined. Throws the world's first error, such as kTimeout naming who is missing.
  void wait_for_start();
  ~Control();

  const std::string& local_address() const { return local_address_; }
  // A broken connection is reported by failure(), not here. A deferred frame is sent with the next one, or with the
  // next heartbeat.
  void send(FrameType type, const std::string& payload = {}, bool deferred = false);
  // For a rank that is about to end: returns when everything is sent, or the time limit is over.
  void send_all(FrameType type, const std::string& payload, std::chrono::milliseconds limit);
  // The coordinator's store. get() waits for the key; throws the world's first error, or kTimeout.
  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key, std::chrono::milliseconds limit);

  // Called for frames that concern a run (kMatched, kEnded), and when the world fails. Empty functions: no listener.
  struct Handlers {
    std::function<void(const Frame&)> on_frame;
    std::function<void()> on_failure;
  };
  void listen(Handlers handlers);  // returns when no previous handler is still running

  std::optional<WorldFailure> failure();
  std::optional<WorldFailure> wait_failure(std::chrono::milliseconds limit);
  // Only the first call counts.
  void fail(const WorldFailure& failure);

 private:
  using Clock = std::chrono::steady_clock;
  bool try_to_join();
  std::optional<Frame> next_frame(Clock::time_point until);
  void loop();
  void read_all();
  void handle(const Frame& frame);
  void check_times();
  void flush();  // REQUIRES: send_mutex_ held
  bool may_end();
  void lost_the_line();
  void lost(ErrorKind kind, const std::string& what, const std::string& got);

  JoinOptions options_;
  Clock::time_point deadline_;  // for joining
  Socket socket_;
  FrameReader in_{kFrameCap};
  std::string local_address_;
  Socket wake_;

  std::mutex send_mutex_;
  std::string out_;
  bool broken_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<WorldFailure> failure_;
  std::map<std::string, std::string> values_;
  bool started_ = false;
  bool goodbye_ = false;

  std::mutex handlers_mutex_;
  Handlers handlers_;

  Clock::time_point last_heard_ = Clock::now();
  Clock::time_point last_round_ = Clock::now();
  Clock::time_point last_beat_ = Clock::now();
  std::atomic<bool> stopping_{false};
  std::atomic<bool> over_{false};  // nobody reads the connection any more
  std::thread thread_;
};

}  // namespace ranklab::cpu_sim
