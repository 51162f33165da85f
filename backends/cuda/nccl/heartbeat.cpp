#include "backends/cuda/nccl/heartbeat.h"

#include <optional>

#include "core/base/text.h"

namespace ranklab {
namespace {

std::string key_of(int rank) { return "alive/" + std::to_string(rank); }

}  // namespace

std::string silent_ranks(Rendezvous& rendezvous, HeartbeatOptions options) {
  std::vector<std::string> alive, finished;
  for (int rank = 0; rank < rendezvous.world_size(); ++rank) {
    alive.push_back(key_of(rank));
    finished.push_back(Rendezvous::finished_key(rank));
  }
  constexpr std::chrono::milliseconds kAnswers{2'000};
  const auto nobody = "no answer of " + rendezvous.store_place();
  const auto before = rendezvous.look_all(alive, kAnswers);
  if (!before) return nobody;
  std::this_thread::sleep_for(options.period * 5 / 2);
  const auto after = rendezvous.look_all(alive, kAnswers), done = rendezvous.look_all(finished, kAnswers);
  if (!after || !done) return nobody;
  std::vector<int> silent;
  for (size_t rank = 0; rank < alive.size(); ++rank) {
    if ((*before)[rank] == (*after)[rank] && !(*done)[rank]) silent.push_back(static_cast<int>(rank));
  }
  return silent.empty() ? "" : "no sign of life of rank " + join(silent, ", ");
}

Heartbeat::Heartbeat(Rendezvous& rendezvous, Failure& failure, HeartbeatOptions options)
    : rendezvous_(rendezvous), failure_(failure), options_(options) {
  if (rendezvous_.world_size() > 1) thread_ = std::thread([this] { run(); });
}

void Heartbeat::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_came_.notify_all();
  thread_.join();
  thread_ = {};
}

void Heartbeat::run() {
  for (;;) {
    if (const std::optional<Error> mine = failure_.take_unreported()) rendezvous_.report_failure(mine->what());
    try {
      beat();
    } catch (const Error& error) {
      failure_.set(error, false);
    } catch (const std::exception& error) {
      failure_.set(Error(ErrorKind::kCommunication,
                         {.where = rendezvous_.where(),
                          .what = "the store of the world does not answer: " + rendezvous_.store_place() + " is gone",
                          .got = error.what(),
                          .fix = "see that rank's log"}),
                   false);
      return;
    }
    std::unique_lock lock(mutex_);
    if (stop_came_.wait_for(lock, options_.period, [this] { return stop_; })) break;
  }
  if (const std::optional<Error> mine = failure_.take_unreported()) rendezvous_.report_failure(mine->what());
}

void Heartbeat::beat() {
  rendezvous_.set(key_of(rendezvous_.rank()), std::to_string(++count_));
  rendezvous_.check_failure();
  if (options_.silence.count() > 0 && !next_is_done_) watch_next();
}

void Heartbeat::watch_next() {
  const int next = (rendezvous_.rank() + 1) % rendezvous_.world_size();
  const std::optional<std::string> now = rendezvous_.look(key_of(next));
  if (!now) return;  // it has not joined yet; the rendezvous waits for that
  if (*now != last_seen_) {
    last_seen_ = *now;
    seen_at_ = Clock::now();
    return;
  }
  const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - seen_at_);
  if (silent < options_.silence) return;
  next_is_done_ = true;
  if (rendezvous_.has_finished(next)) return;
  failure_.set(Error(ErrorKind::kCommunication,
                     {.where = rendezvous_.where(),
                      .what = "rank " + std::to_string(next) + " is gone",
                      .got = strprintf("no sign of life for %.1f s", static_cast<double>(silent.count()) * 1e-3),
                      .want = "one every " + std::to_string(options_.period.count()) + " ms",
                      .fix = "see that rank's log: it was killed, or its host is down"}),
               true);
}

}  // namespace ranklab
