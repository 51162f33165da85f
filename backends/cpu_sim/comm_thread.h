// A communication thread for one rank and communicator: runs that rank's part of collectives whose algorithm needs
// every member's CPU thread (Gloo), in call order, so that async calls progress. One per communicator, because a single
// queue per rank could wait on one axis for a call that a peer queued behind another. Thread rule: submit() from the
// rank's thread.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "backends/cpu_sim/exchange.h"
#include "backends/cpu_sim/mover.h"

namespace ranklab::cpu_sim {

class CommThread {
 public:
  struct Job {
    Job(ExchangePtr job_exchange, int job_seat) : exchange(std::move(job_exchange)), seat(job_seat) {}
    ExchangePtr exchange;
    int seat;
    std::atomic<uint32_t> done{0};
    std::exception_ptr error;  // thrown by the mover; read only after done
  };

  explicit CommThread(std::shared_ptr<Mover> mover);
  ~CommThread();  // ends after the queued jobs; jobs of an aborted world end at once
  std::shared_ptr<Job> submit(const ExchangePtr& exchange, int seat);

 private:
  void loop();

  std::shared_ptr<Mover> mover_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace ranklab::cpu_sim
