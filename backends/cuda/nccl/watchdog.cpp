#include "backends/cuda/nccl/watchdog.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace ranklab {
namespace {

using Clock = std::chrono::steady_clock;

bool late(Clock::time_point since, Clock::time_point now, std::chrono::milliseconds limit) {
  return limit.count() > 0 && now - since > limit;
}

}  // namespace

void WatchedComm::add(std::shared_ptr<const WatchedCall> call) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
}

Watchdog::Watchdog(Failure& failure, WatchdogOptions options)
    : failure_(failure), options_(std::move(options)), asking_([this] { ask(); }), guarding_([this] { guard(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stop_came_.notify_all();
  guarding_.join();
  asking_.join();
}

void Watchdog::add(WatchedComm* comm) {
  const std::lock_guard lock(mutex_);
  comms_.push_back(comm);
}

void Watchdog::remove(WatchedComm* comm) {
  const std::scoped_lock lock(look_mutex_, mutex_);
  std::erase(comms_, comm);
}

void Watchdog::abort_now() noexcept { abort_all(); }

Watchdog::HostCall::HostCall(Watchdog& watchdog, std::string doing) : watchdog_(watchdog) {
  const std::lock_guard lock(watchdog_.host_mutex_);
  outer_ = std::exchange(watchdog_.host_call_, HostState({std::move(doing), Clock::now()}));
}

Watchdog::HostCall::~HostCall() {
  const std::lock_guard lock(watchdog_.host_mutex_);
  watchdog_.host_call_ = std::move(outer_);
}

bool Watchdog::stopped_within(std::chrono::milliseconds limit) {
  std::unique_lock lock(stop_mutex_);
  return stop_came_.wait_for(lock, limit, [this] { return stop_; });
}

void Watchdog::ask() {
  options_.on_thread_start();
  while (!failure_.is_set() && !stopped_within(options_.tick)) {
    try {
      look();
    } catch (const Error& error) {
      failure_.set(error, true);
    } catch (const std::exception& error) {  // thrown by the CUDA runtime after a kernel failed
      failure_.set(Error(ErrorKind::kCommunication,
                         {.where = options_.where, .what = "the GPU reported an error", .got = error.what()}),
                   true);
    }
  }
  const std::lock_guard lock(stop_mutex_);
  ask_ended_ = true;
  stop_came_.notify_all();
}

void Watchdog::guard() {
  while (!failure_.is_set()) {
    if (stopped_within(options_.tick)) break;
    const auto now = Clock::now();
    std::optional<Hang> hang = host_hang(now);
    if (!hang) hang = driver_hang(now);
    if (hang) hangs(*hang);
  }
  if (failure_.is_set()) await_end();
}

// Ends the process even if aborting itself waits for the GPU, or the rank's thread is blocked forever.
void Watchdog::await_end() {
  std::thread aborting([this] {
    abort_all();
    const std::lock_guard lock(stop_mutex_);
    abort_ended_ = true;
    stop_came_.notify_all();
  });
  std::unique_lock lock(stop_mutex_);
  if (!stop_came_.wait_for(lock, options_.grace, [this] { return stop_ && abort_ended_ && ask_ended_; })) {
    lock.unlock();
    options_.leave(*failure_.get());
    lock.lock();
  }
  stop_came_.wait(lock, [this] { return abort_ended_; });
  lock.unlock();
  aborting.join();
}

// If a rank was killed or stopped, that is the cause of the hang; the call in flight only shows where this rank noticed
// it.
void Watchdog::hangs(const Hang& hang) {
  ErrorText text{.where = options_.where,
                 .what = "no end of " + hang.what,
                 .got = "nothing for " + std::to_string(hang.limit.count()) + " ms",
                 .want = "the same call on every member of the group",
                 .fix =
                     "see which rank is behind; --check-calls finds calls that differ, --hang-timeout sets the "
                     "limit"};
  if (const std::string silent = options_.silent_ranks(); !silent.empty()) {
    text.got += ", and " + silent;
    text.fix = "see that rank's log: it was killed or stopped, or its host is down";
  }
  failure_.set(Error(ErrorKind::kTimeout, text), true);
}

void Watchdog::look() {
  const auto now = Clock::now();
  const std::lock_guard lock(look_mutex_);
  std::vector<WatchedComm*> comms;
  {
    const std::lock_guard own(mutex_);
    comms = comms_;
  }
  std::optional<Hang> hang;
  for (WatchedComm* comm : comms) {
    if (std::optional<Hang> found = look_at(*comm, now); found && !hang) hang = std::move(found);
  }
  std::optional<Error> remote;
  {
    const std::lock_guard own(mutex_);
    looking_at_.reset();
    if (remote_error_ && now - remote_error_since_ > options_.naming) remote = remote_error_;
  }
  if (remote) failure_.set(*remote, true);
  if (hang && !failure_.is_set()) hangs(*hang);
}

std::optional<Watchdog::Hang> Watchdog::host_hang(Clock::time_point now) {
  const std::lock_guard lock(host_mutex_);
  const auto limit = options_.host_timeout;
  if (host_call_ && late(host_call_->second, now, limit)) return Hang{host_call_->first, limit};
  return std::nullopt;
}

// Detects that the rank's thread is in the driver and locks all other threads out, which may happen while a kernel
// waits for a peer.
std::optional<Watchdog::Hang> Watchdog::driver_hang(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!looking_at_ || !late(looking_at_->second, now, options_.hang_timeout)) return std::nullopt;
  return Hang{looking_at_->first + " (the GPU's driver does not answer)", options_.hang_timeout};
}

std::optional<Watchdog::Hang> Watchdog::look_at(WatchedComm& comm, Clock::time_point now) {
  const std::lock_guard lock(comm.mutex_);
  std::optional<Hang> hang;
  while (!comm.calls_.empty()) {
    const std::string what = comm.describe() + " " + comm.calls_.front()->describe();
    {
      const std::lock_guard own(mutex_);
      looking_at_ = {what, now};
    }
    const WatchedCall::State state = comm.calls_.front()->state();
    if (state == WatchedCall::State::kDone) {
      comm.calls_.pop_front();
      comm.running_since_.reset();
      continue;
    }
    if (state == WatchedCall::State::kRunning && !comm.running_since_) comm.running_since_ = now;
    if (comm.running_since_ && late(*comm.running_since_, now, options_.hang_timeout))
      hang = Hang{what, options_.hang_timeout};
    break;
  }
  bool remote = false;
  if (const std::optional<Error> error = comm.reported_error(remote)) {
    if (!remote) {
      failure_.set(*error, true);
    } else {
      const std::lock_guard own(mutex_);
      if (!remote_error_) {
        remote_error_ = error;
        remote_error_since_ = now;
      }
    }
  }
  return hang;
}

void Watchdog::abort_all() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(aborted_, true)) options_.abort_all(comms_);
}

}  // namespace ranklab
