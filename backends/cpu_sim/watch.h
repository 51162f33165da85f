// Tracks what every rank of a thread world is doing, and detects the errors that follow from it. Only the hang check
// uses a time limit: a deadlock is detected in the wait-for graph. A rank waits for every member that has not made the
// call in which the rank is blocked. When a rank blocks, the graph is followed from it: a cycle, or a member whose body
// has returned, can never be resolved, so it is reported at once. A member that is running (slow, sleeping, computing)
// is not a deadlock. A running member that others have waited for longer than the limit, and that has made no call for
// that long, is hung; a time in which all of them were stopped does not count. The first error poisons the world: open
// exchanges are aborted, their waiters wake, later calls throw. A stepper, if any, is notified of who sleeps for whom;
// a rank that it holds is slow, never hung. Cost: one mutex per post, and one more per wait that really sleeps. Thread
// rule: all public functions lock, except those that say REQUIRES: mutex held.
#pragma once
#include <pthread.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu_sim/exchange.h"
#include "core/base/error.h"

namespace ranklab {
class Stepper;
}

namespace ranklab::cpu_sim {

class Watch {
 public:
  // The stepper may be null, and must outlive this.
  Watch(int world_size, std::chrono::milliseconds hang_timeout, Stepper* stepper = nullptr);

  std::mutex& mutex() { return mutex_; }
  // Called with the mutex held when the world is poisoned: aborts every open exchange.
  void on_poison(std::function<void()> abort_open) { abort_open_ = std::move(abort_open); }

  // REQUIRES: mutex held. Throws when the world is poisoned; else records that the rank made a call at this time.
  void enter(int rank, int64_t now_ns);
  // REQUIRES: mutex held. All members have posted: its waiters are no longer blocked.
  void matched(const Exchange& exchange);
  // REQUIRES: mutex held. One more member has posted; others are still missing.
  void joined(const Exchange& exchange);
  // REQUIRES: mutex held. The first error wins. `ranks` are those that throw this error itself (others throw "aborted
  // ..."); `rank` is the one to name, or -1.
  void poison(int rank, std::vector<int> ranks, const Error& error);

  // REQUIRES: mutex held. Two members of a call differ. Which of them is wrong shows when the others have posted
  // theirs, so the world continues until settle_dispute(), for at most half a second. An error that occurs in the
  // meantime is a consequence, and `verdict` is reported in its place.
  void dispute(std::vector<int> ranks, std::function<Error()> verdict);
  void settle_dispute();

  // The rank is about to sleep until the exchange is matched; throws on a deadlock. No effect once matched.
  void block(int rank, const ExchangePtr& exchange);
  void finished_call(int rank, const Exchange& exchange, int seat, int64_t now_ns);
  // The rank's body returned, or threw.
  void body_returned(int rank);
  void body_failed(int rank, const Error& error);
  // The rank's process is gone or does not answer.
  void process_lost(int rank, ErrorKind kind, const std::string& what, const std::string& got, const std::string& fix);

  // The thread of a rank that is a thread; it must live until body_returned() or body_failed().
  void runs_on(int rank, pthread_t thread);
  // Poisons the world when a rank is hung. To be called often: eight times in the limit, every half second at least.
  void check_hang(int64_t now_ns);
  // The error that this rank has to throw after the world was poisoned.
  Error abort_error(int rank);
  std::optional<Error> first_error();

 private:
  struct Finished {  // copied data: keeping the exchange would keep its tensors
    std::shared_ptr<const ChannelInfo> channel;
    Verb verb = Verb::kBarrier;
    int64_t sequence = -1;
    CallSite site;
  };
  struct RankState {
    ExchangePtr blocked_on;
    int64_t blocked_since_ns = 0;
    int64_t last_activity_ns = 0;
    bool returned = false;
    std::optional<pthread_t> thread;
    Finished last_finished;
  };
  struct Dispute {
    std::vector<int> ranks;
    std::function<Error()> verdict;
    int64_t since_ns = 0;
  };
  struct Poison {
    Error error;
    std::vector<int> ranks;
    int rank;
  };

  RankState& state(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  bool find_dead_end(int rank, std::vector<int>& path, std::vector<bool>& seen);
  void report_deadlock(const std::vector<int>& path);
  void forget_held_up(int64_t now_ns);
  bool report_hang(int waiter, int culprit, int64_t now_ns);
  void report_blocked(int rank);
  std::string call_text(int rank);
  std::string waiting_text(int rank);
  std::string last_finished_text(int rank);
  std::string stack_text(int rank);

  std::mutex mutex_;
  std::vector<RankState> ranks_;
  int64_t hang_timeout_ns_;
  Stepper* stepper_;
  int64_t last_check_ns_;
  std::function<void()> abort_open_;
  std::optional<Dispute> dispute_;
  std::optional<Poison> poison_;
};

}  // namespace ranklab::cpu_sim
