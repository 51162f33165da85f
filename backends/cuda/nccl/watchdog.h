// Supervises the calls in flight, because the rank's own thread does not wait for them: it runs ahead of its GPU, or is
// blocked in a synchronization that never ends because a peer is dead. There are two threads. One queries the GPU: it
// finds a call that runs longer than the hang time-out, and errors that the communicators report. The other never calls
// the driver, which may lock the first one out as long as the rank's thread is blocked in it: it finds a library call
// that blocks the host, and notices if the first thread does not return. What either finds becomes the rank's Failure;
// then all communicators are aborted together, so that kernels that wait for a peer end, and the rank's thread returns
// and throws. If it does not return within a grace period, the process prints the error and exits with its exit code.
// Cost: one event query per communicator and tick. Thread rule: add, remove and HostCall from the rank's thread; the
// rest is its own.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/nccl/failure.h"

namespace ranklab {

// A call in flight.
class WatchedCall {
 public:
  enum class State { kWaiting, kRunning, kDone };  // kWaiting: earlier work on its stream has not ended
  virtual ~WatchedCall() = default;
  virtual State state() const = 0;
  virtual std::string describe() const = 0;
};

// A communicator, whose calls end in the order in which they were added.
class WatchedComm {
 public:
  virtual ~WatchedComm() = default;
  void add(std::shared_ptr<const WatchedCall> call);
  virtual std::string describe() const = 0;
  // An asynchronous error reported by the library. `remote`: it looks like the death of a peer, which the heartbeat can
  // name.
  virtual std::optional<Error> reported_error(bool& remote) = 0;

 private:
  friend class Watchdog;
  std::mutex mutex_;
  std::deque<std::shared_ptr<const WatchedCall>> calls_;
  std::optional<std::chrono::steady_clock::time_point> running_since_;  // since when the oldest call has been running
};

struct WatchdogOptions {
  std::string where;                          // "rank 3"
  std::chrono::milliseconds hang_timeout{0};  // for a call on the GPU; 0: no limit
  std::chrono::milliseconds host_timeout{0};  // for the host inside the library, where it connects; 0: no limit
  std::chrono::milliseconds tick{50};
  std::chrono::milliseconds grace{10'000};
  // How long an error that looks like a peer's death is held back, so that the heartbeat can name the peer.
  std::chrono::milliseconds naming{6'000};
  std::function<void()> on_thread_start = [] {};
  // Describes which ranks give no sign of life; "" if all do. Asked once, when a call hangs; may take seconds.
  std::function<std::string()> silent_ranks = [] { return std::string(); };
  std::function<void(const std::vector<WatchedComm*>&)> abort_all;
  std::function<void(const Error&)> leave;
};

class Watchdog {
 public:
  Watchdog(Failure& failure, WatchdogOptions options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void add(WatchedComm* comm);
  void remove(WatchedComm* comm);
  // For an error that is unwinding the rank's thread and whose text is not known yet: frees the GPU at once.
  void abort_now() noexcept;

  // The operation of the rank's thread that may wait for other ranks, and since when it runs.
  using HostState = std::optional<std::pair<std::string, std::chrono::steady_clock::time_point>>;
  // Marks that the rank's thread is inside the library, or waits for another rank's host. Scopes nest; the innermost
  // one is watched.
  class HostCall {
   public:
    HostCall(Watchdog& watchdog, std::string doing);
    ~HostCall();
    HostCall(const HostCall&) = delete;
    HostCall& operator=(const HostCall&) = delete;

   private:
    Watchdog& watchdog_;
    HostState outer_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  struct Hang {
    std::string what;
    std::chrono::milliseconds limit;
  };
  // The thread that queries the GPU.
  void ask();
  void look();
  std::optional<Hang> look_at(WatchedComm& comm, Clock::time_point now);
  // The other thread.
  void guard();
  std::optional<Hang> host_hang(Clock::time_point now);
  std::optional<Hang> driver_hang(Clock::time_point now);
  void await_end();

  void hangs(const Hang& hang);
  void abort_all();
  bool stopped_within(std::chrono::milliseconds limit);

  Failure& failure_;
  WatchdogOptions options_;
  std::mutex look_mutex_;  // held while comms are visited, so that none is destroyed meanwhile; lock it before mutex_
  std::mutex mutex_;       // guards the following members; never held during a call of the driver
  std::vector<WatchedComm*> comms_;
  bool aborted_ = false;
  std::optional<Error> remote_error_;
  Clock::time_point remote_error_since_;
  std::optional<std::pair<std::string, Clock::time_point>> looking_at_;
  std::mutex host_mutex_;
  HostState host_call_;
  std::mutex stop_mutex_;
  std::condition_variable stop_came_;
  bool stop_ = false;
  bool abort_ended_ = false;
  bool ask_ended_ = false;
  std::thread asking_, guarding_;
};

}  // namespace ranklab
